"""KL divergence of two logits tensors: forward and backward."""

from typing import Any, NamedTuple

import torch

from . import backends
from .first_order import guard
from .rows import new_gradient, row_count


class KlOptions(NamedTuple):
    """Pairs are of student and teacher."""

    temperatures: tuple
    softcaps: tuple
    vocab: int
    reverse: bool
    carried: Any = None  # how, where not as usual: a Carried


def forward(student, teacher, row_index, temperatures, options, save):
    """(value, saved statistics [5, N] or None)."""
    leading = (
        student.shape[:-1] if row_index is None else (row_index.shape[0],)
    )
    value = torch.empty(leading, device=student.device)
    stats = None
    if save:
        stats = torch.empty(
            (5, row_count(student, row_index)), device=student.device
        )
    if student.numel() == 0:
        return value, stats
    backends.run(
        student.device,
        "kl_forward",
        student,
        teacher,
        row_index,
        temperatures,
        options,
        value,
        stats,
    )
    if save:
        stats[0].copy_(value.view(-1))
    return value, stats


def backward(
    student, teacher, row_index, temperatures, stats, upstream, options, needed
):
    """Gradients of student and teacher, None where not needed."""
    gradients = tuple(
        new_gradient(side, row_index) if wanted else None
        for side, wanted in zip((student, teacher), needed)
    )
    if student.numel() == 0:
        return gradients
    if student.dim() > 3:
        upstream = upstream.contiguous()
    backends.run(
        student.device,
        "kl_backward",
        student,
        teacher,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradients,
    )
    return gradients


class Kl(torch.autograd.Function):
    """Saves the inputs themselves and 20 bytes per row."""

    @staticmethod
    def forward(
        ctx, student, teacher, row_index, student_rows, teacher_rows, options
    ):
        temperatures = (student_rows, teacher_rows)
        value, stats = forward(
            student, teacher, row_index, temperatures, options, True
        )
        ctx.save_for_backward(student, teacher, row_index, *temperatures, stats)
        ctx.options = options
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, upstream):
        if upstream is None:
            return (None,) * 6
        student, teacher, row_index, *temperatures, stats = ctx.saved_tensors
        gradients = guard(
            backward,
            student,
            teacher,
            row_index,
            temperatures,
            stats,
            upstream,
            ctx.options,
            ctx.needs_input_grad[:2],
        )
        return (*gradients, None, None, None, None)
