"""The operations on NumPy arrays, on the CPU device."""

import math

import numpy

from . import _arguments, _checks, _structs
from ._library import check, workspace_bytes
from ._runtime import runtime

_DTYPES = {
    "float32": _structs.FP32,
    "bfloat16": _structs.BF16,  # of the package ml_dtypes
    "float16": _structs.FP16,
    "int32": _structs.INT32,
    "int64": _structs.INT64,
}
_ABSENT = _structs.ABSENT


class _NumpyArrays(_checks.Arrays):
    kind = "a NumPy array"
    to_contiguous = "numpy.ascontiguousarray of it"

    def holds(self, value):
        return isinstance(value, numpy.ndarray)

    def dtype(self, array):
        # Of another byte order: ">f4", which is none of the names.
        return array.dtype.name if array.dtype.isnative else array.dtype.str

    def strides(self, array):
        if not array.size:  # NumPy's own mean nothing
            return _contiguous_strides(array.shape)
        if any(stride % array.itemsize for stride in array.strides):
            return None
        return [stride // array.itemsize for stride in array.strides]

    def flat(self, array):
        made = _flat(array, 1)
        same = not array.size or numpy.may_share_memory(made, array)
        return made if same else None

    def contiguous(self, array):
        return numpy.ascontiguousarray(array)

    def spread(self, scalar, shape):
        return numpy.full(shape, scalar, numpy.float32)

    def replaced(self, ids, old, new):
        return numpy.where(ids == old, ids.dtype.type(new), ids)


ARRAYS = _NumpyArrays()


def _contiguous_strides(shape):
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= max(length, 1)
    return strides


def _flat(array, trailing):
    """Rank 2 + trailing at most; `trailing` dimensions are kept apart."""
    most = 2 + trailing
    if array.ndim <= most:
        return array
    kept = array.shape[array.ndim - most + 1 :]
    return array.reshape(array.size // max(math.prod(kept), 1), *kept)


def _pack(array, trailing=0):
    if array is None:
        return _ABSENT
    array = _flat(array, trailing)
    return _structs.tensor(
        array.__array_interface__["data"][0],
        _DTYPES[array.dtype.name],
        array.shape,
        ARRAYS.strides(array),
        _structs.CPU,
        0,
    )


def _carried(name, how, call, *more):
    """(the call with its options, what it copies into)."""
    if how is None:
        return call, None

    def with_room(place=0, size=0):
        options = _structs.call_options(
            how.validate, how.copy_strided, place, size
        )
        return _structs.with_options(call, options)

    room = numpy.empty(workspace_bytes(name, with_room(), *more), numpy.uint8)
    return with_room(room.ctypes.data, room.size), room


class _Call:
    """What the row operations share: everything checked and packed."""

    def __init__(self, logits, ids, terms, arguments):
        made = _checks.row_inputs(ARRAYS, logits, ids, arguments)
        ids, leading = made.ids, made.leading
        self.trailing = made.trailing
        self.inputs = (logits, ids, made.row_index, made.temperatures)
        self.carried = made.carried
        self.ignore_id = made.carried.ignore_id if made.carried else -100
        self.head = (
            _pack(logits, 1),
            _pack(ids, made.trailing),
            _pack(made.row_index),
            made.columns,
            made.temperature,
            made.softcap,
            _pack(made.temperatures),
        )
        shapes = (() if ids is None else ids.shape, *[leading] * 4)
        types = (*[numpy.float32] * 4, numpy.int64)
        self.values = tuple(
            numpy.empty(shape, dtype) if terms & bit else None
            for shape, dtype, bit in zip(shapes, types, _structs.VALUE_BITS)
        )
        self.stats = numpy.empty((2, math.prod(leading)), numpy.float32)

    def packed(self):
        logp, *others = self.values
        outputs = (
            _pack(logp, self.trailing),
            *map(_pack, others),
            _pack(self.stats[0]),
            _pack(self.stats[1]),
        )
        return _structs.row_forward(*self.head, outputs, self.ignore_id)


def row_values(logits, ids, terms, arguments):
    if arguments.in_place or arguments.accumulate is not None:
        raise ValueError(
            "in_place, accumulate: NumPy arrays have no backward; see "
            "logprobs_with_grad"
        )
    call = _Call(logits, ids, terms, arguments)
    on = runtime(_structs.CPU, 0)
    packed, _room = _carried("forward", call.carried, call.packed())
    check(on.library.logpjit_forward(on.handle, packed, None))
    return call.values


def logprobs(logits, ids, arguments):
    _arguments.need_ids(ids is not None)
    return row_values(logits, ids, _structs.LOGP, arguments)[0]


def _gradient_array(logits, arguments):
    made = arguments.accumulate
    if made is None and arguments.in_place:
        made = logits
    if made is not None:
        if not made.flags.writeable:
            name = "logits" if made is logits else "accumulate"
            raise ValueError(f"{name}: cannot be written")
        return made
    make = numpy.empty if arguments.row_index is None else numpy.zeros
    return make(logits.shape, logits.dtype)


def logprobs_with_grad(logits, ids, upstream, arguments):
    call = _Call(logits, ids, _structs.LOGP, arguments)
    _checks.check_upstream(ARRAYS, upstream, ids, "cpu")
    upstream = numpy.ascontiguousarray(upstream)
    gradient = _gradient_array(logits, arguments)
    wanted = _structs.row_gradient(
        (_pack(upstream, call.trailing), _ABSENT, _ABSENT, _ABSENT),
        _structs.gradient(
            _pack(gradient, 1),
            arguments.accumulate is not None,
            arguments.in_place,
        ),
    )
    on = runtime(_structs.CPU, 0)
    packed, _room = _carried(
        "forward_with_grad", call.carried, call.packed(), wanted
    )
    check(on.library.logpjit_forward_with_grad(on.handle, packed, wanted, None))
    return call.values[0], gradient


def kl(student, teacher, arguments):
    made = _checks.kl_inputs(ARRAYS, student, teacher, arguments)
    value = numpy.empty(made.leading, numpy.float32)
    transforms = zip(made.temperatures, made.softcaps, map(_pack, made.per_row))
    inputs = _structs.kl_inputs(
        _pack(student, 1),
        _pack(teacher, 1),
        _pack(made.row_index),
        made.columns,
        transforms,
        made.reverse,
    )
    on = runtime(_structs.CPU, 0)
    packed = _structs.kl_forward(inputs, (_pack(value), *[_ABSENT] * 4))
    packed, _room = _carried("kl_forward", made.carried, packed)
    check(on.library.logpjit_kl_forward(on.handle, packed, None))
    return value
