"""Logp, entropy, log-sum-exp, sum of p^2 and argmax: forward and backward."""

from typing import Any, NamedTuple

import torch

from .. import _structs
from . import backends
from .first_order import guard

VALUE_DTYPES = (torch.float32,) * 4 + (torch.int64,)
VALUE_BITS = _structs.VALUE_BITS


class RowOptions(NamedTuple):
    """What a row operation needs besides tensors."""

    terms: int  # bit set
    temperature: float
    softcap: float
    vocab: int  # columns that count
    trailing: int  # 1 when ids have a dimension K
    carried: Any = None  # how, where not as usual: a Carried

    @property
    def saved_rows(self):
        """Rows of the saved statistics that hold entropy and sum of p^2."""
        return 2, 3 if self.terms & _structs.ENTROPY else 2


def saved_count(terms):
    """fp32 numbers saved for each row."""
    return 2 + bool(terms & _structs.ENTROPY) + bool(terms & _structs.SQUARES)


def row_count(logits, row_index):
    if row_index is not None:
        return row_index.shape[0]
    return logits.numel() // logits.shape[-1]


def value_shapes(logits, ids, row_index):
    """Shapes of the five results."""
    leading = (
        logits.shape[:-1] if row_index is None else (row_index.shape[0],)
    )
    return (None if ids is None else ids.shape, *[leading] * 4)


def forward(logits, ids, row_index, temperatures, options, save):
    """(the five results, None where not asked for; saved statistics)."""
    device = logits.device
    terms = options.terms
    shapes = value_shapes(logits, ids, row_index)
    values = tuple(
        torch.empty(shape, dtype=dtype, device=device) if terms & bit else None
        for shape, dtype, bit in zip(shapes, VALUE_DTYPES, VALUE_BITS)
    )
    stats = None
    if save:
        rows = row_count(logits, row_index)
        stats = torch.empty((saved_count(terms), rows), device=device)
    if logits.numel() == 0:
        return values, stats
    backends.run(
        device,
        "row_forward",
        logits,
        ids,
        row_index,
        temperatures,
        options,
        values,
        stats,
    )
    if save:
        keep_values(values, stats, options)
    return values, stats


def keep_values(values, stats, options):
    """Copies what the backward needs of the values: callers may write into
    what they are given."""
    for value, row in zip((values[1], values[3]), options.saved_rows):
        if value is not None:
            stats[row].copy_(value.view(-1))


def new_gradient(logits, row_index):
    """A gradient of the logits' shape; rows nobody writes are 0."""
    make = torch.empty if row_index is None else torch.zeros
    return make(logits.shape, dtype=logits.dtype, device=logits.device)


def backward(
    logits,
    ids,
    row_index,
    temperatures,
    stats,
    upstream,
    options,
    accumulate=None,
    in_place=False,
):
    """The gradient, into `accumulate` or over the logits when so asked."""
    if accumulate is not None:
        gradient = accumulate
    elif in_place:
        gradient = logits.detach()
    else:
        gradient = new_gradient(logits, row_index)
    if logits.numel() == 0:
        return gradient
    if logits.dim() > 3:
        upstream = tuple(g if g is None else g.contiguous() for g in upstream)
    backends.run(
        logits.device,
        "row_backward",
        logits,
        ids,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradient,
        accumulate is not None,
        in_place,
    )
    return gradient


class Rows(torch.autograd.Function):
    """Saves the inputs themselves and 8 to 16 bytes per row."""

    @staticmethod
    def forward(
        ctx, logits, ids, row_index, temperatures, options, accumulate, in_place
    ):
        values, stats = forward(
            logits, ids, row_index, temperatures, options, True
        )
        ctx.save_for_backward(logits, ids, row_index, temperatures, stats)
        ctx.options = options
        ctx.accumulate = accumulate
        ctx.in_place = in_place
        ctx.set_materialize_grads(False)
        if values[4] is not None:
            ctx.mark_non_differentiable(values[4])
        return values

    @staticmethod
    def backward(ctx, *upstream):
        logits, ids, row_index, temperatures, stats = ctx.saved_tensors
        upstream = upstream[:4]
        gradient = None
        if any(g is not None for g in upstream):
            gradient = guard(
                backward,
                logits,
                ids,
                row_index,
                temperatures,
                stats,
                upstream,
                ctx.options,
                ctx.accumulate,
                ctx.in_place,
            )
        if ctx.accumulate is not None:
            gradient = None
        elif ctx.in_place:
            # Whoever else saved these logits must not read the gradient.
            torch.autograd.graph.increment_version(logits)
        return gradient, None, None, None, None, None, None


def with_grad(
    logits,
    ids,
    row_index,
    temperatures,
    upstream,
    options,
    accumulate,
    in_place,
):
    """(logp, gradient) in one call of the backend."""
    logp = torch.empty(ids.shape, device=logits.device)
    stats = torch.empty((2, row_count(logits, row_index)), device=logits.device)
    if accumulate is not None:
        gradient = accumulate
    else:
        gradient = logits if in_place else new_gradient(logits, row_index)
    if logits.numel() == 0:
        return logp, gradient
    if logits.dim() > 3:
        upstream = upstream.contiguous()
    backends.run(
        logits.device,
        "row_with_grad",
        logits,
        ids,
        row_index,
        temperatures,
        options,
        logp,
        stats,
        upstream,
        gradient,
        accumulate is not None,
        in_place,
    )
    if in_place:
        torch.autograd.graph.increment_version(logits)
    return logp, gradient
