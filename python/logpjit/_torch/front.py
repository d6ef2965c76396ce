"""The public operations on torch tensors: a plan where there is one; else checks,
then autograd or a compiled graph's operators or, without a gradient, the
computation alone."""

import torch

from .. import _arguments, _checks, _structs
from .._arguments import KL_DEFAULTS, ROW_DEFAULTS
from . import divergence, operators, plans, rows, wrappers
from .arrays import ARRAYS
from .divergence import Kl, KlOptions
from .plans import is_watched
from .rows import RowOptions, Rows

_grad_enabled = torch.is_grad_enabled
_LOGP = _structs.LOGP
_UNTRACEABLE = (
    "not possible where operators are traced (torch.compile, export)"
)


def logprobs(logits, ids, arguments):
    _arguments.need_ids(ids is not None)
    plan = plans.find(_LOGP, logits, ids, arguments, ROW_DEFAULTS)
    if plan is not None:
        made = _run_rows(plan, logits, ids, arguments)
        if made is not None:
            return made[0]
    return _checked_row_values(logits, ids, _LOGP, arguments)[0]


def row_values(logits, ids, terms, arguments):
    """The five results, None where not asked for."""
    plan = plans.find(terms, logits, ids, arguments, ROW_DEFAULTS)
    if plan is not None:
        made = _run_rows(plan, logits, ids, arguments)
        if made is not None:
            return plan.spread(made)
    return _checked_row_values(logits, ids, terms, arguments)


def _run_rows(plan, logits, ids, arguments):
    inputs = (logits,) if ids is None else (logits, ids)
    accumulate = None
    if plan.takes_more:
        accumulate = arguments.accumulate
        others = arguments.row_index, arguments.temperature
        inputs += tuple(t for t in others if isinstance(t, torch.Tensor))
    if logits.requires_grad and _grad_enabled():
        return plan.differentiable(accumulate, *inputs)
    return plan.forward(*inputs)


def _unwrapped(logits, other, name):
    if plans.is_compiling() or type(logits) in plans.PLAIN:
        return logits, other
    return wrappers.unwrap(logits, other, name)


def _row_inputs(logits, ids, terms, arguments):
    """((logits, ids, row_index, temperatures), options), checked."""
    made = _checks.row_inputs(ARRAYS, logits, ids, arguments)
    inputs = logits, made.ids, made.row_index, made.temperatures
    options = RowOptions(
        terms,
        made.temperature,
        made.softcap,
        made.columns,
        made.trailing,
        made.carried,
    )
    return inputs, options


def _traceable(options, *logits):
    """The logits as operators take them."""
    if options.carried is None:
        return logits
    if options.carried.validate:
        raise ValueError(f"validate: {_UNTRACEABLE}")
    return tuple(tensor.contiguous() for tensor in logits)


def _checked_row_values(logits, ids, terms, arguments):
    plans.refuse_transforms()
    logits, ids = _unwrapped(logits, ids, "ids")
    inputs, options = _row_inputs(logits, ids, terms, arguments)
    accumulate, in_place = arguments.accumulate, bool(arguments.in_place)
    if is_watched(logits):
        if in_place or accumulate is not None:
            raise ValueError(f"in_place, accumulate: {_UNTRACEABLE}")
        (logits,) = _traceable(options, logits)
        return operators.row_values(logits, *inputs[1:], options)
    if logits.requires_grad and _grad_enabled():
        made = Rows.apply(*inputs, options, accumulate, in_place)
    else:
        made, _ = rows.forward(*inputs, options, False)
    if options.carried is None:
        plans.remember_rows(inputs, ids, arguments, options)
    return made


def logprobs_with_grad(logits, ids, upstream, arguments):
    logits, ids = _unwrapped(logits, ids, "ids")
    logits = logits.detach()
    inputs, options = _row_inputs(logits, ids, _LOGP, arguments)
    _checks.check_upstream(ARRAYS, upstream, ids, logits.device)
    return rows.with_grad(
        *inputs,
        upstream.detach(),
        options,
        arguments.accumulate,
        bool(arguments.in_place),
    )


def kl(student, teacher, arguments):
    plan = None
    if teacher is not None:
        plan = plans.find("kl", student, teacher, arguments, KL_DEFAULTS)
    if plan is not None:
        inputs = (student, teacher)
        if plan.takes_more:
            others = arguments.row_index, *arguments.temperatures
            inputs += tuple(t for t in others if isinstance(t, torch.Tensor))
        if _grad_enabled() and (student.requires_grad or teacher.requires_grad):
            made = plan.differentiable(None, *inputs)
        else:
            made = plan.forward(*inputs)
        if made is not None:
            return made[0]
    return _checked_kl(student, teacher, arguments)


def _checked_kl(student, teacher, arguments):
    plans.refuse_transforms()
    student, teacher = _unwrapped(student, teacher, "teacher")
    made = _checks.kl_inputs(ARRAYS, student, teacher, arguments)
    inputs = student, teacher, made.row_index, *made.per_row
    options = KlOptions(
        made.temperatures,
        made.softcaps,
        made.columns,
        made.reverse,
        made.carried,
    )
    if is_watched(student):
        sides = _traceable(options, student, teacher)
        return operators.kl(*sides, *inputs[2:], options)
    if _grad_enabled() and (student.requires_grad or teacher.requires_grad):
        value = Kl.apply(*inputs, options)
    else:
        value, _ = divergence.forward(*inputs[:3], inputs[3:], options, False)
    if options.carried is None:
        plans.remember_kl(inputs, arguments, options)
    return value
