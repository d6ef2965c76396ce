"""Draws what grpo.py measured: plot.py RESULT.json PICTURE.svg (matplotlib)."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from figures import difference, summary  # noqa: E402

COLOURS = {"eager": "#d1495b", "logpjit": "#00798c"}
STYLES = {
    "eager": {"color": COLOURS["eager"], "linewidth": 3, "alpha": 0.5},
    "logpjit": {"color": COLOURS["logpjit"], "linestyle": "--"},
    "float64": {"color": "black", "linestyle": ":", "linewidth": 1},
}


def bars(axes, values, title, unit):
    names = list(values)
    drawn = axes.bar(names, values.values(), color=[COLOURS[n] for n in names])
    axes.bar_label(drawn, fmt="%.1f " + unit, padding=3)
    axes.set_title(title)
    axes.set_ylim(0, 1.15 * max(values.values()))
    axes.spines[["top", "right"]].set_visible(False)


def main(source, target):
    with open(source, encoding="utf-8") as file:
        made = json.load(file)
    found, options = made["found"], made["options"]
    figure, (curve, times, peaks) = pyplot.subplots(
        1, 3, figsize=(11, 3.6), width_ratios=(2, 1, 1), layout="constrained"
    )
    for name, style in STYLES.items():
        curve.plot(found[name]["loss"], label=name, **style)
    apart = [
        difference(found["eager"]["loss"], found[name]["loss"])
        for name in ("logpjit", "float64")
    ]
    curve.set(
        title="Loss: from eager's, logpjit parts by {:.0e}, float64 by "
        "{:.0e}".format(*apart),
        xlabel="step",
    )
    curve.legend(frameon=False)
    curve.spines[["top", "right"]].set_visible(False)
    figures = {name: summary(found[name]) for name in COLOURS}
    bars(times, {n: f[0] for n, f in figures.items()}, "Time a step", "ms")
    bars(peaks, {n: f[1] for n, f in figures.items()}, "Peak memory", "GiB")
    rows = options["groups"] * options["group_size"] * options["length"]
    figure.suptitle(
        f"GRPO-like step, {rows} tokens × {options['vocab']} columns, "
        f"{options['dtype']}, {made['device']}"
    )
    figure.savefig(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
