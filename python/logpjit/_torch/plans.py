"""Calls on tensors of a form met before: all but the pointers is packed already,
so that a call costs a few microseconds of Python.

A plan is made after a call of this form has passed every check, and serves
tensors whose dtypes, shapes, strides and devices are the same. Where something
watches the operators (a compiler, a mode) or the library fails, there is no plan:
the long way knows what to do or say.
"""

from functools import partial

import torch

from .._arguments import KL_DEFAULTS, ROW_DEFAULTS
from . import backends
from .kernels import Kernels
from .kl_plan import KlPlan
from .row_plan import RowPlan

_MOST = 1000  # forms; variable sequence lengths make many
PLAIN = (torch.Tensor, torch.nn.Parameter)
_SCALARS = frozenset((float, int, bool, str, type(None)))
_TENSORS = ("temperature", "teacher_temperature", "row_index", "accumulate")
_known = {}  # by form
_recent = {}  # by what the call is: (check of the form, plan) of the last one
is_compiling = torch.compiler.is_compiling
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_transforms = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: False
)


def forget():
    _known.clear()
    _recent.clear()


backends.on_forget(forget)


def is_watched(tensor):
    """Whether operators must be seen by who watches: a compiler, a mode, a
    tensor subclass."""
    return is_compiling() or type(tensor) not in PLAIN or _modes() > 0


def refuse_transforms():
    if not is_compiling() and _transforms():
        raise RuntimeError(
            "logpjit: torch.func's transforms (grad, vmap, jvp, ...) cannot see "
            "into its operations: use torch.autograd"
        )


def _form(tensor):
    return (
        tensor.dtype,
        tensor.shape,
        tensor.stride(),
        tensor.device,
        tensor.requires_grad,
    )


def _form_of(arguments):
    """What of them must be the same; None where that cannot be told."""
    kinds = tuple(map(type, arguments))
    if _SCALARS.issuperset(kinds):
        return kinds, arguments
    parts = []
    for name, value, kind in zip(arguments._fields, arguments, kinds):
        if kind in _SCALARS:
            parts.append(value)
        elif (
            kind in PLAIN
            and name in _TENSORS
            and not value.is_nested
            and value.dim() > 0
        ):
            parts.append(_form(value))
        else:  # a number in a tensor, or what is yet to be refused
            return None
    return kinds, tuple(parts)


def _what(name, arguments, defaults):
    """All of a call but its tensors; None where that cannot be told."""
    if arguments is defaults:
        return name
    rest = _form_of(arguments)
    return None if rest is None else (name, rest)


def _key(what, a, b):
    """Of a call on the tensors a and b; b may be None."""
    if b is None:
        return what, a.dtype, a.shape, a.stride(), a.device
    return (
        what,
        a.dtype,
        a.shape,
        a.stride(),
        a.device,
        b.dtype,
        b.shape,
        b.stride(),
        b.device,
    )


def _is_nested(a, b):
    """Torch's comparison of a nested tensor ends the process."""
    return getattr(a, "is_nested", False) or getattr(b, "is_nested", False)


def find(name, a, b, arguments, defaults):
    """The plan that serves the call, or None. `name`: terms of the rows, or
    "kl"; it says whether there is a b."""
    if is_compiling() or _is_nested(a, b):
        return None
    what = name if arguments is defaults else _what(name, arguments, defaults)
    recent = _recent.get(what)
    if recent is not None:
        is_alike, plan = recent
        if is_alike(a) if b is None else is_alike(a, b):
            return plan
    return None if what is None else _look_up(what, a, b)


def _look_up(what, a, b):
    if (
        type(a) not in PLAIN
        or (b is not None and type(b) not in PLAIN)
        or _modes()
        or _transforms()
    ):
        return None
    try:
        plan = _known.get(_key(what, a, b))
    except RuntimeError:
        return None  # a tensor without strides
    if plan is not None:
        check = plan.check(a) if b is None else plan.check(a, b)
        if check is not None:
            _recent[what] = check, plan
    return plan


def _is_plannable(logits, inputs, *given):
    """`given`: (what the caller gave, what the checks made of it)."""
    return (
        not is_watched(logits)
        and not _transforms()
        and 0 < logits.numel()
        and logits.dim() <= 3
        and all(type(t) in PLAIN for t in inputs if t is not None)
        and all(made is None or made is gave for gave, made in given)
    )


def _remember(name, a, b, arguments, defaults, make):
    """After a call went well, so the next one of this form may be quicker."""
    what = _what(name, arguments, defaults)
    if what is None:
        return
    if len(_known) >= _MOST:
        forget()
    _known[_key(what, a, b)] = make()


def remember_rows(inputs, given_ids, arguments, options):
    logits, ids, row_index, temperatures = inputs
    backend = backends.backend(logits.device)
    if isinstance(backend, Kernels) and _is_plannable(
        logits,
        inputs,
        (given_ids, ids),
        (arguments.row_index, row_index),
        (arguments.temperature, temperatures),
    ):
        make = partial(RowPlan, backend, inputs, options, arguments)
        _remember(options.terms, logits, ids, arguments, ROW_DEFAULTS, make)


def remember_kl(inputs, arguments, options):
    student, teacher, row_index, *temperatures = inputs
    backend = backends.backend(student.device)
    if isinstance(backend, Kernels) and _is_plannable(
        student,
        inputs,
        (arguments.row_index, row_index),
        *zip(arguments.temperatures, temperatures),
    ):
        make = partial(KlPlan, backend, inputs, options)
        _remember("kl", student, teacher, arguments, KL_DEFAULTS, make)
