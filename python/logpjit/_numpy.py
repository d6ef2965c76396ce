"""The operations on NumPy arrays, on the CPU device."""

import math

import numpy

from . import _arguments, _structs
from ._library import check
from ._runtime import runtime

_DTYPES = {
    "float32": _structs.FP32,
    "bfloat16": _structs.BF16,  # of the package ml_dtypes
    "float16": _structs.FP16,
    "int32": _structs.INT32,
    "int64": _structs.INT64,
}
_ABSENT = _structs.ABSENT
_FLOATS = ("float32", "bfloat16", "float16")


def _check(array, name, dtypes):
    if not isinstance(array, numpy.ndarray):
        raise TypeError(
            f"{name}: {type(array).__name__} is not a NumPy array, the logits are"
        )
    if array.dtype.name not in dtypes or not array.dtype.isnative:
        raise TypeError(
            f"{name}: dtype {array.dtype} is not {' or '.join(dtypes)}"
        )


def _check_logits(logits, name="logits"):
    _check(logits, name, _FLOATS)
    if logits.ndim < 2:
        raise ValueError(f"{name}: shape {list(logits.shape)} is not [..., V]")
    if logits.shape[-1] == 0:
        raise ValueError(f"{name}: V is 0")
    if logits.size == 0:
        return  # NumPy's strides of empty arrays mean nothing
    if logits.shape[-1] > 1 and logits.strides[-1] != logits.itemsize:
        raise ValueError(
            f"{name}: rows are not contiguous along the vocabulary: pass "
            "numpy.ascontiguousarray of it"
        )
    if any(stride % logits.itemsize for stride in logits.strides):
        raise ValueError(f"{name}: a stride is not a multiple of the element")


def _strides(array):
    """In elements; of an empty array, those it would have."""
    if array.size:
        return [stride // array.itemsize for stride in array.strides]
    strides, step = [], 1
    for length in reversed(array.shape):
        strides.insert(0, step)
        step *= max(length, 1)
    return strides


def _pack(array, trailing=0):
    """A view of rank 3 at most; `trailing` dimensions are kept apart."""
    if array is None:
        return _ABSENT
    most = 2 + trailing
    if array.ndim > most:
        kept = array.shape[array.ndim - most + 1 :]
        lead = array.size // max(math.prod(kept), 1)
        flat = array.reshape(lead, *kept)
        if array.size and not numpy.may_share_memory(flat, array):
            raise ValueError(
                "logits: leading dimensions cannot be read as two: pass "
                "numpy.ascontiguousarray of it"
            )
        array = flat
    strides = _strides(array)
    return _structs.tensor(
        array.__array_interface__["data"][0],
        _DTYPES[array.dtype.name],
        array.shape,
        strides,
        _structs.CPU,
        0,
    )


def _check_index(row_index):
    if row_index is None:
        return
    _check(row_index, "row_index", ("int64",))
    if row_index.ndim != 1:
        raise ValueError("row_index: is not one-dimensional")


def _check_ids(ids, leading, ignore_index, columns):
    if ids is None:
        return None
    _check(ids, "ids", ("int32", "int64"))
    _arguments.check_ids_shape(ids.shape, leading)
    if 0 <= ignore_index < columns:
        ids = numpy.where(ids == ignore_index, ids.dtype.type(-100), ids)
    return numpy.ascontiguousarray(ids)


def _transform(temperature, softcap, leading, name="temperature"):
    """(scalar, softcap, packed array, the array kept alive)."""
    cap = _arguments.number(softcap, "softcap")
    if isinstance(temperature, numpy.ndarray) and temperature.ndim > 0:
        _check(temperature, name, ("float32",))
        _arguments.check_shape(temperature.shape, leading, name)
        flat = numpy.ascontiguousarray(temperature).reshape(-1)
        return 1.0, cap, _pack(flat), flat
    return _arguments.number(temperature, name), cap, _ABSENT, None


class _Call:
    """What the row operations share: everything checked and packed."""

    def __init__(
        self, logits, ids, terms, temperature, softcap, ignore, vocab, index
    ):
        _check_logits(logits)
        _check_index(index)
        leading = _arguments.leading_shape(logits.shape, index)
        columns = _arguments.columns_of(vocab, logits.shape[-1])
        ids = _check_ids(ids, leading, ignore, columns)
        scalar, cap, temperatures, kept = _transform(
            temperature, softcap, leading
        )
        self.kept = (logits, ids, index, kept)
        trailing = 0 if ids is None else ids.ndim - len(leading)
        self.trailing = trailing
        self.head = (
            _pack(logits, 1),
            _pack(ids, trailing),
            _pack(index),
            columns,
            scalar,
            cap,
            temperatures,
        )
        shapes = (ids.shape if ids is not None else (), *[leading] * 4)
        types = (*[numpy.float32] * 4, numpy.int64)
        self.values = tuple(
            numpy.empty(shape, dtype) if terms & bit else None
            for shape, dtype, bit in zip(shapes, types, (1, 2, 4, 8, 16))
        )
        rows = 1
        for size in leading:
            rows *= size
        self.stats = numpy.empty((2, rows), numpy.float32)

    def packed(self):
        logp, *others = self.values
        outputs = (
            _pack(logp, self.trailing),
            *map(_pack, others),
            _pack(self.stats[0]),
            _pack(self.stats[1]),
        )
        return _structs.row_forward(*self.head, outputs)


def _refuse_gradients(in_place, accumulate):
    if in_place or accumulate is not None:
        raise ValueError(
            "in_place, accumulate: NumPy arrays have no backward; see "
            "logprobs_with_grad"
        )


def row_values(
    logits,
    ids,
    outputs,
    temperature,
    softcap,
    ignore_index,
    vocab,
    row_index,
    in_place,
    accumulate,
):
    _refuse_gradients(in_place, accumulate)
    terms = _arguments.terms_of(outputs, ids is not None)
    if not terms & _structs.LOGP:
        ids = None
    call = _Call(
        logits,
        ids,
        terms,
        temperature,
        softcap,
        ignore_index,
        vocab,
        row_index,
    )
    on = runtime(_structs.CPU, 0)
    check(on.library.logpjit_forward(on.handle, call.packed(), None))
    return call.values


def logprobs(logits, ids, *options):
    return row_values(logits, ids, ("logp",), *options)[0]


def _gradient_array(logits, in_place, accumulate, row_index):
    if accumulate is not None:
        _check(accumulate, "accumulate", (logits.dtype.name,))
        _arguments.check_shape(accumulate.shape, logits.shape, "accumulate")
        return accumulate
    if in_place:
        return logits
    if row_index is not None:
        return numpy.zeros(logits.shape, logits.dtype)
    return numpy.empty(logits.shape, logits.dtype)


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
    call = _Call(
        logits,
        ids,
        _structs.LOGP,
        temperature,
        softcap,
        ignore_index,
        vocab,
        row_index,
    )
    _check(upstream, "upstream", ("float32",))
    _arguments.check_shape(upstream.shape, ids.shape, "upstream")
    upstream = numpy.ascontiguousarray(upstream)
    gradient = _gradient_array(logits, in_place, accumulate, row_index)
    if not gradient.flags.writeable:
        raise ValueError("logits: in_place needs an array that can be written")
    packed = _structs.row_gradient(
        (_pack(upstream, call.trailing), _ABSENT, _ABSENT, _ABSENT),
        _structs.gradient(_pack(gradient, 1), accumulate is not None, in_place),
    )
    on = runtime(_structs.CPU, 0)
    check(
        on.library.logpjit_forward_with_grad(
            on.handle, call.packed(), packed, None
        )
    )
    return call.values[0], gradient


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
    _check_logits(student, "student")
    _check_logits(teacher, "teacher")
    _check_index(row_index)
    _arguments.check_shape(teacher.shape[:-1], student.shape[:-1], "teacher")
    leading = _arguments.leading_shape(student.shape, row_index)
    if vocab is None:
        _arguments.check_shape(teacher.shape, student.shape, "teacher")
    columns = _arguments.columns_of(vocab, student.shape[-1])
    _arguments.columns_of(vocab, teacher.shape[-1])
    sides = (
        _transform(temperature, softcap, leading),
        _transform(
            teacher_temperature, teacher_softcap, leading, "teacher_temperature"
        ),
    )
    value = numpy.empty(leading, numpy.float32)
    inputs = _structs.kl_inputs(
        _pack(student, 1),
        _pack(teacher, 1),
        _pack(row_index),
        columns,
        tuple(side[:3] for side in sides),
        reverse,
    )
    on = runtime(_structs.CPU, 0)
    packed = _structs.kl_forward(inputs, (_pack(value), *[_ABSENT] * 4))
    check(on.library.logpjit_kl_forward(on.handle, packed, None))
    return value
