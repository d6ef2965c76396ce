"""What is read from the figures of a run."""

import statistics


def summary(found):
    """(milliseconds of a step, peak GiB); the first steps compile."""
    settled = found["ms"][len(found["ms"]) // 3 :]
    return statistics.median(settled), max(found["peak_gib"])


def difference(losses, others):
    """The largest there is."""
    return max(abs(a - b) for a, b in zip(losses, others))
