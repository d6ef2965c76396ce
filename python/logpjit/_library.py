"""The shared library: finding, opening and asking it; statuses to exceptions."""

import ctypes
import os
import threading

from . import __version__

OK = 0
INVALID_ARGUMENT = 1
UNSUPPORTED = 2
UNAVAILABLE = 3
COMPILE_FAILED = 4
TIMEOUT = 7
OUT_OF_MEMORY = 10

LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)

_lock = threading.Lock()
_opened = None


class Error(RuntimeError):
    """What the library could not do. `status` is the C interface's number,
    `log` a compiler's output or empty. Wrong arguments are ValueError instead.
    """

    def __init__(self, message, status=UNAVAILABLE, log=""):
        super().__init__(message)
        self.status = status
        self.log = log


def path():
    """The library's file: $LOGPJIT_LIBRARY, else the one in this package."""
    chosen = os.environ.get("LOGPJIT_LIBRARY")
    if chosen:
        return chosen
    return os.path.join(os.path.dirname(__file__), "liblogpjit.so")


def _minor(version):
    return version.split(".")[:2]


def _open(file):
    try:
        library = ctypes.CDLL(file)
        version = library.logpjit_version
    except (OSError, AttributeError) as reason:
        raise Error(
            f"logpjit's library {file!r} cannot be used: {reason}; install the "
            "package again, or set LOGPJIT_LIBRARY to a liblogpjit.so"
        ) from reason
    version.restype = ctypes.c_char_p
    found = version().decode()
    if _minor(found) != _minor(__version__):
        raise Error(
            f"logpjit's library {file!r} is version {found}, the Python package "
            f"is {__version__}: install both from one wheel, or unset "
            "LOGPJIT_LIBRARY"
        )
    _declare(library)
    return library


def _declare(library):
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.logpjit_last_error.restype = text
    library.logpjit_last_log.restype = text
    # Structs travel as packed bytes: see _structs.py.
    for name, arguments in {
        "runtime_create": (text, ctypes.POINTER(pointer)),
        "runtime_device": (pointer, pointer),
        "runtime_counters": (pointer, pointer),
        "runtime_cache": (pointer, pointer),
        "runtime_compiler": (pointer, ctypes.POINTER(text)),
        "forward": (pointer, text, pointer),
        "backward": (pointer, text, pointer),
        "forward_with_grad": (pointer, text, text, pointer),
        "kl_forward": (pointer, text, pointer),
        "kl_backward": (pointer, text, pointer),
        **_workspace_functions(pointer, text),
        "shards_create": (
            pointer,
            pointer,
            ctypes.c_int32,
            ctypes.c_int64,
            ctypes.POINTER(pointer),
        ),
        **_shard_functions(pointer, text),
        "prepare": (pointer, ctypes.POINTER(text), ctypes.c_size_t),
        "kernel_create": (pointer, text, text, ctypes.POINTER(pointer)),
        "kernel_config": (
            pointer,
            ctypes.c_int64,
            text,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_size_t),
        ),
    }.items():
        function = getattr(library, f"logpjit_{name}")
        function.argtypes = arguments
        function.restype = ctypes.c_int
    library.logpjit_kernel_destroy.argtypes = (pointer,)
    library.logpjit_kernel_destroy.restype = None


def _workspace_functions(pointer, text):
    names = ("forward", "backward", "kl_forward", "kl_backward")
    made = {f"{name}_workspace": (text, pointer) for name in names}
    made["forward_with_grad_workspace"] = (text, text, pointer)
    return made


def _shard_functions(pointer, text):
    made = {}
    for kind in ("row", "kl"):
        made[f"shard_{kind}_sizes"] = (pointer, text, text, pointer)
        made[f"shard_{kind}_gradient"] = (pointer, text, text, pointer)
        for step in ("statistics", "merge"):
            made[f"shard_{kind}_{step}"] = (pointer, text, text, text, pointer)
    return made


def library():
    """The library, opened at the first call. Raises Error when it cannot be
    read or is of another version than this package."""
    global _opened
    if _opened is None:
        with _lock:
            if _opened is None:
                _opened = _open(path())
    return _opened


def workspace_bytes(name, *calls):
    """What the call named so needs, for what it copies."""
    size = ctypes.c_uint64()
    function = getattr(library(), f"logpjit_{name}_workspace")
    check(function(*calls, ctypes.addressof(size)))
    return size.value


def check(status):
    """Raises what a status other than OK stands for."""
    if status == OK:
        return
    opened = library()
    message = opened.logpjit_last_error().decode(errors="replace")
    if status == INVALID_ARGUMENT:
        raise ValueError(message)
    if status == OUT_OF_MEMORY:
        raise MemoryError(message)
    log = opened.logpjit_last_log().decode(errors="replace")
    raise Error(message, status, log)
