"""Kernels made ahead of the first step, and what was chosen for them."""

import ctypes

from . import _arguments, _library, _structs
from ._runtime import parse_device, runtime

_DTYPES = {
    "fp32": _structs.FP32,
    "float32": _structs.FP32,
    "bf16": _structs.BF16,
    "bfloat16": _structs.BF16,
    "fp16": _structs.FP16,
    "float16": _structs.FP16,
    "int32": _structs.INT32,
    "int64": _structs.INT64,
}
_BYTES = {_structs.FP32: 4, _structs.BF16: 2, _structs.FP16: 2}
_ROWS_STRIDED, _ROWS_STRIDED2, _ROWS_INDEXED = range(3)

# The kernels of each public function; other names are the library's own.
_KERNELS = {
    "logprobs": ("logp", "logp_backward"),
    "entropy": ("entropy", "entropy_backward"),
    "logprobs_and_entropy": ("logp+entropy", "logp+entropy_backward"),
    "kl": ("kl", "kl_backward"),
}


def _dtype(value, name, allowed):
    """Of "bf16", torch.bfloat16, numpy.float32 and the like."""
    text = getattr(value, "__name__", None) or str(value)
    code = _DTYPES.get(text.rpartition(".")[2])
    if code not in allowed:
        raise TypeError(f"{name}: {value!r} is no dtype it may have")
    return code


def dtype_name(value, name="dtype"):
    """"bf16", of all that stands for it."""
    code = _dtype(value, name, _BYTES)
    return next(text for text, found in _DTYPES.items() if found == code)


def _packed(op, vocab, dtype, options):
    """(packed struct, what must stay alive)."""
    logits = _dtype(dtype, "dtype", _BYTES)
    teacher = options.pop("teacher_dtype", None)
    other = logits if teacher is None else _dtype(teacher, "teacher_dtype", _BYTES)
    ids = _dtype(
        options.pop("ids", "int64"), "ids", (_structs.INT32, _structs.INT64)
    )
    reverse = _arguments.is_reverse(options.pop("direction", "forward"))
    if op.startswith("kl") and not reverse:
        logits, other = other, logits  # the first side is the teacher
    rows = _ROWS_STRIDED2 if options.pop("views", False) else _ROWS_STRIDED
    if options.pop("row_index", False):
        rows = _ROWS_INDEXED
    unaligned = vocab * _BYTES[logits] % 16 != 0 or vocab * _BYTES[other] % 16 != 0
    flags = [
        bool(options.pop("many_ids", False)),
        unaligned or bool(options.pop("unaligned", False)),
        bool(options.pop("temperature", False)),
        bool(options.pop("softcap", False)),
        bool(options.pop("accumulate", False)),
    ]
    both = bool(options.pop("teacher_gradient", False))
    flags += [not reverse and not both, both]
    if options:
        raise TypeError(f"prepare: unexpected {', '.join(options)}")
    name = ctypes.create_string_buffer(op.encode())
    packed = _structs.spec(
        ctypes.addressof(name), vocab, logits, other, ids, rows, flags
    )
    return packed, name


def kernels_of(ops):
    if isinstance(ops, str):
        ops = (ops,)
    return [name for op in ops for name in _KERNELS.get(op, (op,))]


def prepare(vocab, dtype, *, ops="logprobs", device="cuda", **options):
    """Reads from the cache or compiles, and loads, what later calls will need.
    Loading waits for all work running on the GPU: call it before training.

    vocab: length of a row. dtype: of the logits, "bf16", torch.bfloat16, ...
    ops: names of functions of this package (with their backward) or of the
    library's operations ("logp", "entropy_backward", ...). Options, as the calls
    will have them: ids ("int64"), many_ids, temperature (anything but 1),
    softcap, row_index, accumulate, views (logits[:, :-1] of [B, S, V]),
    unaligned (rows that start anywhere), and for kl direction, teacher_dtype and
    teacher_gradient.
    """
    if not isinstance(vocab, int) or isinstance(vocab, bool):
        raise TypeError(f"vocab: {type(vocab).__name__} is not an int")
    on = runtime(*parse_device(device))
    packed = [_packed(op, vocab, dtype, dict(options)) for op in kernels_of(ops)]
    specs = (ctypes.c_char_p * len(packed))(*[spec for spec, _ in packed])
    _library.check(on.library.logpjit_prepare(on.handle, specs, len(packed)))


def launch_config(op, vocab, dtype, rows, *, device="cuda", **options):
    """The launch configuration that serves `rows` rows, as "block=512,...":
    tuned for this GPU, or the default. `op` is the library's name; options as
    in `prepare`."""
    on = runtime(*parse_device(device))
    packed, _kept = _packed(op, vocab, dtype, dict(options))
    kernel = ctypes.c_void_p()
    _library.check(
        on.library.logpjit_kernel_create(
            on.handle, packed, None, ctypes.byref(kernel)
        )
    )
    try:
        text = ctypes.create_string_buffer(1024)
        _library.check(
            on.library.logpjit_kernel_config(kernel, rows, text, 1024, None)
        )
        return text.value.decode()
    finally:
        on.library.logpjit_kernel_destroy(kernel)
