"""The C interface's structs as packed bytes: quicker than ctypes fields."""

import struct

FP32, BF16, FP16, INT32, INT64 = range(5)
CPU, CUDA = range(2)

# Results of one sweep, as in kernel_spec.hpp.
LOGP, ENTROPY, LSE, SQUARES, ARGMAX = VALUE_BITS = 1, 2, 4, 8, 16

_TENSOR = {
    1: struct.Struct("=Qii q24x q24x ii"),
    2: struct.Struct("=Qii 2q16x 2q16x ii"),
    3: struct.Struct("=Qii 3q8x 3q8x ii"),
}
TENSOR_BYTES = _TENSOR[1].size
ABSENT = bytes(TENSOR_BYTES)

_OPTIONS = struct.Struct("=Q6QdQQ4i")
_ROW_SCALARS = struct.Struct("=qqff")
_VOCAB_TRANSFORM = struct.Struct("=qff")
_TRANSFORM = struct.Struct("=ff")
_FLAGS = struct.Struct("=ii")
_CALL_OPTIONS = struct.Struct("=4iqQQQQ")
_SPEC = struct.Struct("=QQq12i")


def _sized(tensors, scalars):
    return struct.pack("=Q", 8 + tensors * TENSOR_BYTES + scalars)


_FORWARD_SIZE = _sized(12, _ROW_SCALARS.size)
_BACKWARD_SIZE = _sized(13, _VOCAB_TRANSFORM.size + _FLAGS.size)
_GRADIENT_SIZE = _sized(5, _FLAGS.size)
_KL_SCALARS = _VOCAB_TRANSFORM.size + _TRANSFORM.size + _FLAGS.size
_KL_FORWARD_SIZE = _sized(10, _KL_SCALARS)
_KL_BACKWARD_SIZE = _sized(13, _KL_SCALARS + 2 * _FLAGS.size)


# Where the tensors lie in the packed calls, and the rank within a tensor: 0 is
# "not given".
RANK = 12


def _places(begin, count):
    return [begin + number * TENSOR_BYTES for number in range(count)]


FORWARD_TENSORS = [
    *_places(8, 3),
    *_places(8 + 3 * TENSOR_BYTES + _ROW_SCALARS.size, 9),
]
BACKWARD_TENSORS = [
    *_places(8, 3),
    *_places(8 + 3 * TENSOR_BYTES + _VOCAB_TRANSFORM.size, 10),
]
_KL_VALUES = 8 + 5 * TENSOR_BYTES + _KL_SCALARS
_KL_INPUTS = [
    *_places(8, 3),
    8 + 3 * TENSOR_BYTES + _VOCAB_TRANSFORM.size,
    8 + 4 * TENSOR_BYTES + _VOCAB_TRANSFORM.size + _TRANSFORM.size,
]
KL_FORWARD_TENSORS = [*_KL_INPUTS, *_places(_KL_VALUES, 5)]
KL_BACKWARD_TENSORS = [
    *_KL_INPUTS,
    *_places(_KL_VALUES, 7),
    _KL_VALUES + 7 * TENSOR_BYTES + _FLAGS.size,
]


def tensor(pointer, dtype, shape, strides, kind, index):
    """A logpjit_tensor of rank 1 to 3; strides in elements."""
    rank = len(shape)
    return _TENSOR[rank].pack(
        pointer, dtype, rank, *shape, *strides, kind, index
    )


def vector(pointer, dtype, length, kind, index):
    """A contiguous logpjit_tensor of rank 1."""
    return _TENSOR[1].pack(pointer, dtype, 1, length, 1, kind, index)


def gradient(packed, accumulate=False, in_place=False):
    return packed + _FLAGS.pack(accumulate, in_place)


NO_GRADIENT = gradient(ABSENT)


def row_forward(
    logits,
    ids,
    row_index,
    vocab,
    temperature,
    softcap,
    temperatures,
    outputs,
    ignore_id=-100,
    out_of_range=ABSENT,
):
    """`outputs`: logp, entropy, lse, squares, argmax, max, sum, packed."""
    return b"".join(
        (
            _FORWARD_SIZE,
            logits,
            ids,
            row_index,
            _ROW_SCALARS.pack(vocab, ignore_id, temperature, softcap),
            temperatures,
            *outputs,
            out_of_range,
        )
    )


def row_backward(
    logits,
    ids,
    row_index,
    vocab,
    temperature,
    softcap,
    temperatures,
    saved,
    upstream,
    packed_gradient,
):
    """`saved`: max, sum, entropy, squares; `upstream`: of logp, entropy, lse,
    squares."""
    return b"".join(
        (
            _BACKWARD_SIZE,
            logits,
            ids,
            row_index,
            _VOCAB_TRANSFORM.pack(vocab, temperature, softcap),
            temperatures,
            *saved,
            *upstream,
            packed_gradient,
        )
    )


def row_gradient(upstream, packed_gradient):
    return b"".join((_GRADIENT_SIZE, *upstream, packed_gradient))


def kl_inputs(student, teacher, row_index, vocab, transforms, reverse):
    """`transforms`: (temperature, softcap, temperatures) of student, teacher."""
    (t, cap, rows), (teacher_t, teacher_cap, teacher_rows) = transforms
    return b"".join(
        (
            student,
            teacher,
            row_index,
            _VOCAB_TRANSFORM.pack(vocab, t, cap),
            rows,
            _TRANSFORM.pack(teacher_t, teacher_cap),
            teacher_rows,
            _FLAGS.pack(reverse, 0),
        )
    )


def kl_forward(inputs, values):
    """`values`: kl and the four statistics."""
    return b"".join((_KL_FORWARD_SIZE, inputs, *values))


def kl_backward(inputs, values, upstream, student, teacher):
    return b"".join(
        (_KL_BACKWARD_SIZE, inputs, *values, upstream, student, teacher)
    )


def with_options(packed, options, ignore_id=None):
    """A call that says how it is carried out; `ignore_id` where the struct has
    it before that."""
    if ignore_id is not None:
        packed += struct.pack("=q", ignore_id)
    size = struct.pack("=Q", len(packed) + len(options))
    return b"".join((size, packed[8:], options))


def call_options(validate, copy_strided, workspace=0, workspace_bytes=0):
    return _CALL_OPTIONS.pack(
        validate, copy_strided, 0, 0, 0, workspace, workspace_bytes, 0, 0
    )


def options(texts, timeout, log, never_compile, cpu_threads, fallback):
    """`texts`: addresses of device, cache directory, read-only caches, driver,
    NVRTC and host compiler, 0 for what the environment says."""
    return _OPTIONS.pack(
        _OPTIONS.size,
        *texts,
        timeout,
        log,
        0,
        1,
        never_compile,
        cpu_threads,
        fallback,
    )


def spec(op, vocab, logits, other, ids, rows, flags):
    """`op`: address of the name; `flags`: many_ids, unaligned, temperature,
    softcap, accumulate, only_grad_b, both_grads."""
    return _SPEC.pack(
        _SPEC.size, op, vocab, logits, other, ids, rows, *flags, 0
    )
