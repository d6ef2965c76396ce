"""The same computations as torch.library operators, with fake kernels and
autograd: what torch.compile and tensor subclasses see."""

from typing import Optional

import torch
from torch import Tensor

from . import divergence, rows
from .divergence import KlOptions
from .rows import RowOptions

_MaybeTensor = Optional[Tensor]


def _given(values, like):
    """Operators return tensors only: an empty one stands for none."""
    return tuple(
        like.new_empty((0,), dtype=torch.float32) if value is None else value
        for value in values
    )


@torch.library.custom_op("logpjit::row_forward", mutates_args=())
def row_forward(
    logits: Tensor,
    ids: _MaybeTensor,
    row_index: _MaybeTensor,
    temperatures: _MaybeTensor,
    terms: int,
    temperature: float,
    softcap: float,
    vocab: int,
    trailing: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """logp, entropy, lse, squares, argmax, saved statistics."""
    options = RowOptions(terms, temperature, softcap, vocab, trailing)
    values, stats = rows.forward(
        logits, ids, row_index, temperatures, options, True
    )
    return (*_given(values, logits), stats)


@row_forward.register_fake
def _(
    logits,
    ids,
    row_index,
    temperatures,
    terms,
    temperature,
    softcap,
    vocab,
    trailing,
):
    shapes = rows.value_shapes(logits, ids, row_index)
    values = tuple(
        logits.new_empty(shape, dtype=dtype) if terms & bit else None
        for shape, dtype, bit in zip(shapes, rows.VALUE_DTYPES, rows.VALUE_BITS)
    )
    stats = logits.new_empty(
        (rows.saved_count(terms), rows.row_count(logits, row_index)),
        dtype=torch.float32,
    )
    return (*_given(values, logits), stats)


@torch.library.custom_op("logpjit::row_backward", mutates_args=())
def row_backward(
    logits: Tensor,
    ids: _MaybeTensor,
    row_index: _MaybeTensor,
    temperatures: _MaybeTensor,
    stats: Tensor,
    d_logp: _MaybeTensor,
    d_entropy: _MaybeTensor,
    d_lse: _MaybeTensor,
    d_squares: _MaybeTensor,
    terms: int,
    temperature: float,
    softcap: float,
    vocab: int,
    trailing: int,
) -> Tensor:
    """The gradient with respect to the logits."""
    options = RowOptions(terms, temperature, softcap, vocab, trailing)
    return rows.backward(
        logits,
        ids,
        row_index,
        temperatures,
        stats,
        (d_logp, d_entropy, d_lse, d_squares),
        options,
    )


@row_backward.register_fake
def _(logits, *_):
    return logits.new_empty(logits.shape)


def _save_rows(ctx, inputs, output):
    logits, ids, row_index, temperatures, *options = inputs
    ctx.save_for_backward(logits, ids, row_index, temperatures, output[5])
    ctx.options = options
    ctx.mark_non_differentiable(output[4], output[5])
    ctx.set_materialize_grads(False)


def _differentiate_rows(ctx, *upstream):
    logits, ids, row_index, temperatures, stats = ctx.saved_tensors
    # Tracers also differentiate the empty results that stand for none.
    terms = ctx.options[0]
    upstream = tuple(
        g if terms & bit else None for g, bit in zip(upstream[:4], rows.VALUE_BITS)
    )
    gradient = None
    if any(g is not None for g in upstream):
        gradient = row_backward(
            logits, ids, row_index, temperatures, stats, *upstream, *ctx.options
        )
    return (gradient,) + (None,) * 8


row_forward.register_autograd(_differentiate_rows, setup_context=_save_rows)


def row_values(logits, ids, row_index, temperatures, options):
    """The five results, None where not asked for."""
    made = row_forward(logits, ids, row_index, temperatures, *options[:5])
    return tuple(
        value if options.terms & bit else None
        for value, bit in zip(made, rows.VALUE_BITS)
    )


@torch.library.custom_op("logpjit::kl_forward", mutates_args=())
def kl_forward(
    student: Tensor,
    teacher: Tensor,
    row_index: _MaybeTensor,
    student_rows: _MaybeTensor,
    teacher_rows: _MaybeTensor,
    temperature: float,
    teacher_temperature: float,
    softcap: float,
    teacher_softcap: float,
    vocab: int,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """The divergence and the saved statistics."""
    options = KlOptions(
        (temperature, teacher_temperature),
        (softcap, teacher_softcap),
        vocab,
        reverse,
    )
    return divergence.forward(
        student, teacher, row_index, (student_rows, teacher_rows), options, True
    )


@kl_forward.register_fake
def _(student, teacher, row_index, *_):
    count = rows.row_count(student, row_index)
    leading = student.shape[:-1] if row_index is None else (count,)
    return (
        student.new_empty(leading, dtype=torch.float32),
        student.new_empty((5, count), dtype=torch.float32),
    )


@torch.library.custom_op("logpjit::kl_backward", mutates_args=())
def kl_backward(
    student: Tensor,
    teacher: Tensor,
    row_index: _MaybeTensor,
    student_rows: _MaybeTensor,
    teacher_rows: _MaybeTensor,
    stats: Tensor,
    upstream: Tensor,
    for_student: bool,
    for_teacher: bool,
    temperature: float,
    teacher_temperature: float,
    softcap: float,
    teacher_softcap: float,
    vocab: int,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of student and teacher; empty where not needed."""
    options = KlOptions(
        (temperature, teacher_temperature),
        (softcap, teacher_softcap),
        vocab,
        reverse,
    )
    gradients = divergence.backward(
        student,
        teacher,
        row_index,
        (student_rows, teacher_rows),
        stats,
        upstream,
        options,
        (for_student, for_teacher),
    )
    return tuple(
        side.new_empty((0,)) if made is None else made
        for side, made in zip((student, teacher), gradients)
    )


@kl_backward.register_fake
def _(
    student, teacher, row_index, s, t, stats, upstream, for_student, for_teacher, *_
):
    return (
        student.new_empty(student.shape if for_student else (0,)),
        teacher.new_empty(teacher.shape if for_teacher else (0,)),
    )


def _save_kl(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5], output[1])
    ctx.options = inputs[5:]
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate_kl(ctx, upstream, _):
    if upstream is None:
        return (None,) * 11
    *tensors, stats = ctx.saved_tensors
    needed = ctx.needs_input_grad[:2]
    made = kl_backward(*tensors, stats, upstream, *needed, *ctx.options)
    gradients = (g if need else None for g, need in zip(made, needed))
    return (*gradients, *[None] * 9)


kl_forward.register_autograd(_differentiate_kl, setup_context=_save_kl)


def kl(student, teacher, row_index, student_rows, teacher_rows, options):
    return kl_forward(
        student,
        teacher,
        row_index,
        student_rows,
        teacher_rows,
        *options.temperatures,
        *options.softcaps,
        options.vocab,
        options.reverse,
    )[0]
