"""Times the package on a GPU beside what it replaces, in one process.

    python tests/python/bench --json result.json [--flash-attn cross_entropy.py]

Forward and backward through autograd: log-probabilities beside flash-attn's
Triton cross entropy (its file, or the installed package), entropy and reverse KL
beside torch.compile; the memory beyond the gradient; what a call costs the host,
and in a CUDA graph; the import. The last column says what is asked.
"""

import argparse
import json
import time

import device_times
import host_times
import subjects
import torch

import logpjit

MIB = 2**20


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--json", help="file for the figures")
    add("--commit", default="", help="to note beside the figures")
    add("--flash-attn", help="flash-attn's ops/triton/cross_entropy.py")
    add("--vocab", type=int, default=151936)
    add("--rows", type=int, nargs="+", default=[8192, 32768])
    add("--repeats", type=int, default=11)
    add("--calls", type=int, default=10_000, help="of the host's figures")
    add("--only", choices=("host", "device"))
    return parser.parse_args()


class Table:
    """Lines as they are measured, and all of them at the end."""

    def __init__(self):
        self.figures = []

    def add(self, name, value, unit, asked=None, **more):
        self.figures.append(
            {"name": name, "value": value, "unit": unit, "asked": asked, **more}
        )
        text = f"{name:58} {value:9.3f} {unit:4}"
        if asked is not None:
            verdict = "ok" if value <= asked else "MISSED"
            text += f"  asked <= {asked:g}  {verdict}"
        print(text, flush=True)


def compare(table, subject, options):
    """Ours, the other, their ratio and our memory."""
    rows, vocab = subject.rows, options.vocab
    title = f"{subject.name} {rows}x{vocab}"
    logits, ids, upstream = subjects.inputs(rows, vocab)
    extra = subject.extra(logits)
    measured = {}
    for who, make in (("logpjit", subject.ours), (subject.peer, subject.theirs)):
        if make is None:
            continue
        function = make(ids, extra)
        found = device_times.gradient(
            function, logits, upstream, options.repeats
        )
        measured[who] = found["ms"]
        asked = 1.0 if who == "logpjit" else None
        table.add(f"{title}: {who}", found["ms"], "ms", spread=found["spread"])
        table.add(f"{title}: {who}, beyond the gradient",
                  found["beyond_bytes"] / MIB, "MiB", asked)
    if len(measured) == 2:
        ratio = measured["logpjit"] / measured[subject.peer]
        table.add(f"{title}: over {subject.peer}", ratio, "x", subject.asked)


def main():
    options = parse_arguments()
    begin = time.monotonic()
    table = Table()
    if options.only != "device":
        host_times.report(table, options.calls)
    if options.only != "host":
        floor = device_times.copy_ms(options.rows[0], options.vocab)
        table.add(f"copy {options.rows[0]}x{options.vocab}", floor, "ms")
        for subject in subjects.all_of(options.rows, options.flash_attn):
            compare(table, subject, options)
            torch.cuda.empty_cache()
    print(f"in {time.monotonic() - begin:.0f} s")
    if options.json:
        made = {
            "date": time.strftime("%Y-%m-%d"),
            "commit": options.commit,
            "gpu": torch.cuda.get_device_name(),
            "cuda": torch.version.cuda,
            "torch": torch.__version__,
            "logpjit": logpjit.__version__,
            "vocab": options.vocab,
            "dtype": "bf16",
            "figures": table.figures,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(made, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
