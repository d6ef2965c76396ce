"""Float64 answers, from the definitions, edge cases by the letter."""

import numpy

NAN, INF = numpy.nan, numpy.inf


def softmax_parts(row):
    """(log p, p) of one float64 row, or None where it is undefined."""
    if numpy.isnan(row).any() or (row == INF).any() or (row == -INF).all():
        return None
    shifted = row - row.max()
    total = numpy.exp(shifted).sum()
    log_p = shifted - numpy.log(total)
    return log_p, numpy.exp(shifted) / total


def logp(row, number):
    if not 0 <= number < len(row):
        return 0.0
    parts = softmax_parts(row)
    return NAN if parts is None else parts[0][number]


def entropy(row):
    parts = softmax_parts(row)
    if parts is None:
        return NAN
    log_p, p = parts
    return -(p[p > 0] * log_p[p > 0]).sum()


def squares(row):
    parts = softmax_parts(row)
    return NAN if parts is None else (parts[1] ** 2).sum()


def lse(row):
    top = row.max()
    return top + numpy.log(numpy.exp(row - top).sum())


def kl(a, b):
    """KL(a || b)."""
    of_a, of_b = softmax_parts(a), softmax_parts(b)
    if of_a is None or of_b is None:
        return NAN
    if ((a > -INF) & (b == -INF)).any():
        return INF
    live = a > -INF
    return (of_a[1][live] * (of_a[0][live] - of_b[0][live])).sum()


def row_gradient(row, ids, d_logp, d_entropy=0.0):
    """Of sum(d_logp * logp) + d_entropy * entropy; ids may repeat."""
    zeros = numpy.zeros(len(row))
    pairs = [(i, g) for i, g in zip(ids, d_logp) if 0 <= i < len(row)]
    if not any(g != 0 for _, g in pairs) and d_entropy == 0:
        return zeros
    if (row == -INF).all():
        return zeros
    parts = softmax_parts(row)
    if parts is None:
        return zeros + NAN
    log_p, p = parts
    made = -p * sum(g for _, g in pairs)
    for i, g in pairs:
        made[i] += g
    live = p > 0
    made[live] -= d_entropy * p[live] * (log_p[live] + entropy(row))
    return made


def kl_gradients(a, b, g):
    """Of g * KL(a || b), with respect to a and b, for ordinary rows."""
    (log_a, p_a), (log_b, p_b) = softmax_parts(a), softmax_parts(b)
    return g * p_a * (log_a - log_b - kl(a, b)), g * (p_b - p_a)


def per_row(function, *matrices):
    """`function` of the rows of matrices, in the leading shape."""
    lead = matrices[0].shape[:-1]
    flat = [m.reshape(-1, m.shape[-1]).astype(numpy.float64) for m in matrices]
    return numpy.array([function(*rows) for rows in zip(*flat)]).reshape(lead)
