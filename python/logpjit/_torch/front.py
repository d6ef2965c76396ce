"""The public operations on torch tensors: checks, then autograd or a compiled
graph's operators or, without a gradient, the computation alone."""

import torch

from .. import _arguments, _structs
from . import divergence, operators, plans, rows, wrappers
from .divergence import Kl, KlOptions
from .rows import RowOptions, Rows

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_compiling = torch.compiler.is_compiling
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)


def _check_tensor(tensor, name, dtypes, device):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"{name}: {type(tensor).__name__} is not a torch tensor, the "
            "logits are"
        )
    if tensor.dtype not in dtypes:
        wanted = " or ".join(str(dtype)[6:] for dtype in dtypes)
        raise TypeError(f"{name}: dtype {str(tensor.dtype)[6:]} is not {wanted}")
    if tensor.device != device:
        raise ValueError(
            f"{name}: lies on {tensor.device}, the logits on {device}"
        )


def check_logits(logits, name, device, most_dimensions=64, least_columns=1):
    _check_tensor(logits, name, _FLOATS, device)
    dimensions = logits.dim()
    if dimensions < 2:
        raise ValueError(f"{name}: shape {list(logits.shape)} is not [..., V]")
    length = logits.shape[-1]
    if length < least_columns:
        raise ValueError(f"{name}: V is 0")
    if dimensions > most_dimensions:
        raise ValueError(
            f"{name}: shape {list(logits.shape)} has more than "
            f"{most_dimensions} dimensions: flatten the leading ones"
        )
    if length > 1 and logits.stride(-1) != 1:
        raise ValueError(
            f"{name}: stride {logits.stride(-1)} along the vocabulary: rows "
            "must be contiguous, pass .contiguous()"
        )
    if dimensions > 3:
        try:
            logits.view(-1, *logits.shape[-2:])
        except RuntimeError:
            raise ValueError(
                f"{name}: strides {list(logits.stride())} cannot be read as "
                "[B, S, V]: pass .contiguous()"
            ) from None


def check_ids(ids, logits, leading, ignore_index, columns):
    _check_tensor(ids, "ids", (torch.int64, torch.int32), logits.device)
    _arguments.check_ids_shape(ids.shape, leading)
    if logits.dim() > 3:
        ids = ids.contiguous()
    if 0 <= ignore_index < columns:
        ids = ids.masked_fill(ids == ignore_index, -100)
    return ids


def _check_index(row_index, logits):
    _check_tensor(row_index, "row_index", (torch.int64,), logits.device)
    if row_index.dim() != 1:
        raise ValueError("row_index: is not one-dimensional")
    return row_index.contiguous()


def check_temperature(value, leading, device, name="temperature"):
    """(scalar, tensor per row or None)."""
    if isinstance(value, float):
        return value, None
    if not isinstance(value, torch.Tensor):
        return _arguments.number(value, name), None
    if value.requires_grad:
        raise ValueError(f"{name}: has no gradient: pass .detach()")
    if value.dim() == 0:
        value = value.expand(leading)
    _check_tensor(value, name, (torch.float32,), device)
    _arguments.check_shape(value.shape, leading, name)
    return 1.0, value.contiguous() if len(leading) > 2 else value


def _check_accumulate(accumulate, logits, in_place):
    if accumulate is None:
        return
    check_logits(accumulate, "accumulate", logits.device)
    _check_tensor(accumulate, "accumulate", (logits.dtype,), logits.device)
    _arguments.check_shape(accumulate.shape, logits.shape, "accumulate")
    if in_place:
        raise ValueError("in_place, accumulate: exclude each other")
    if accumulate.requires_grad:
        raise ValueError("accumulate: requires grad: pass .detach()")


def _prepared(logits, ids, terms, temperature, softcap, ignore, vocab, index):
    """(ids, row_index, temperatures, options), all checked."""
    check_logits(logits, "logits", logits.device)
    if index is not None:
        index = _check_index(index, logits)
    leading = _arguments.leading_shape(logits.shape, index)
    length = logits.shape[-1]
    columns = length if vocab is None else _arguments.columns_of(vocab, length)
    trailing = 0
    if ids is not None:
        ids = check_ids(ids, logits, leading, ignore, columns)
        trailing = ids.dim() - len(leading)
    scalar, temperatures = check_temperature(temperature, leading, logits.device)
    if not isinstance(softcap, float):
        softcap = _arguments.number(softcap, "softcap")
    options = RowOptions(terms, scalar, softcap, columns, trailing)
    return ids, index, temperatures, options


def _is_traced(tensor):
    """Whether operators must be seen by who watches: a compiler, a mode, a
    tensor subclass."""
    return _is_compiling() or type(tensor) not in _PLAIN or _modes() > 0


def _values(
    logits,
    ids,
    terms,
    temperature,
    softcap,
    ignore_index,
    vocab,
    row_index,
    in_place,
    accumulate,
):
    key = None
    if (
        row_index is None
        and type(temperature) is float
        and not _is_traced(logits)
        and (ids is None or type(ids) in _PLAIN)
    ):
        key = plans.key_of(
            logits, ids, terms, temperature, softcap, ignore_index, vocab
        )
        options = plans.known(key)
        if options is not None and accumulate is None:
            if logits.requires_grad and torch.is_grad_enabled():
                return Rows.apply(
                    logits, ids, None, None, options, None, in_place
                )
            made = options.plan.forward(logits, ids, False)
            if made is not None:
                return made[0]
    if not _is_compiling() and type(logits) not in _PLAIN:
        logits, ids = wrappers.unwrap(logits, ids)
    given = ids
    ids, row_index, temperatures, options = _prepared(
        logits, ids, terms, temperature, softcap, ignore_index, vocab, row_index
    )
    _check_accumulate(accumulate, logits, in_place)
    if _is_traced(logits):
        if in_place or accumulate is not None:
            raise ValueError(
                "in_place, accumulate: not possible where operators are traced "
                "(torch.compile, export)"
            )
        return operators.row_values(
            logits, ids, row_index, temperatures, options
        )
    made = _run(
        logits, ids, row_index, temperatures, options, accumulate, in_place
    )
    # The call went well, so the next one of this form may be quicker.
    if key is not None and ids is given:
        plans.remember(key, logits, ids, options)
    return made


def _run(logits, ids, row_index, temperatures, options, accumulate, in_place):
    if logits.requires_grad and torch.is_grad_enabled():
        return Rows.apply(
            logits, ids, row_index, temperatures, options, accumulate, in_place
        )
    values, _ = rows.forward(
        logits, ids, row_index, temperatures, options, False
    )
    return values


def logprobs(
    logits,
    ids,
    temperature,
    softcap,
    ignore_index,
    vocab,
    row_index,
    in_place,
    accumulate,
):
    if ids is None:
        raise TypeError("ids: needed for logp")
    return _values(
        logits,
        ids,
        _structs.LOGP,
        temperature,
        softcap,
        ignore_index,
        vocab,
        row_index,
        in_place,
        accumulate,
    )[0]


def row_values(logits, ids, outputs, *arguments):
    terms = _arguments.terms_of(outputs, ids is not None)
    if not terms & _structs.LOGP:
        ids = None
    return _values(logits, ids, terms, *arguments)


def logprobs_with_grad(
    logits,
    ids,
    upstream,
    temperature,
    softcap,
    ignore_index,
    vocab,
    row_index,
    in_place,
    accumulate,
):
    _arguments.terms_of(("logp",), ids is not None)
    if type(logits) not in _PLAIN:
        logits, ids = wrappers.unwrap(logits, ids)
    logits = logits.detach()
    ids, row_index, temperatures, options = _prepared(
        logits,
        ids,
        _structs.LOGP,
        temperature,
        softcap,
        ignore_index,
        vocab,
        row_index,
    )
    _check_accumulate(accumulate, logits, in_place)
    _check_tensor(upstream, "upstream", (torch.float32,), logits.device)
    _arguments.check_shape(upstream.shape, ids.shape, "upstream")
    return rows.with_grad(
        logits,
        ids,
        row_index,
        temperatures,
        upstream.detach(),
        options,
        accumulate,
        in_place,
    )


def kl(
    student,
    teacher,
    direction,
    temperature,
    teacher_temperature,
    softcap,
    teacher_softcap,
    vocab,
    row_index,
):
    reverse = _arguments.is_reverse(direction)
    if not _is_compiling() and type(student) not in _PLAIN:
        student, teacher = wrappers.unwrap(student, teacher, "teacher")
    device = student.device
    check_logits(student, "student", device)
    check_logits(teacher, "teacher", device)
    if vocab is None:
        _arguments.check_shape(teacher.shape, student.shape, "teacher")
    _arguments.check_shape(teacher.shape[:-1], student.shape[:-1], "teacher")
    if row_index is not None:
        row_index = _check_index(row_index, student)
    leading = _arguments.leading_shape(student.shape, row_index)
    columns = _arguments.columns_of(vocab, student.shape[-1])
    _arguments.columns_of(vocab, teacher.shape[-1])
    scalar, per_row = check_temperature(temperature, leading, device)
    teacher_scalar, teacher_per_row = check_temperature(
        teacher_temperature, leading, device, "teacher_temperature"
    )
    options = KlOptions(
        (scalar, teacher_scalar),
        (
            _arguments.number(softcap, "softcap"),
            _arguments.number(teacher_softcap, "teacher_softcap"),
        ),
        columns,
        reverse,
    )
    tensors = (student, teacher, row_index, per_row, teacher_per_row)
    if _is_traced(student):
        return operators.kl(*tensors, options)
    if torch.is_grad_enabled() and (
        student.requires_grad or teacher.requires_grad
    ):
        return Kl.apply(*tensors, options)
    value, _ = divergence.forward(*tensors[:3], tensors[3:], options, False)
    return value
