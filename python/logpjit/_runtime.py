"""One runtime of the library for each device, made when first needed."""

import ctypes
import logging
import os
import struct
import threading
import warnings

from . import _library, _structs

log = logging.getLogger("logpjit")

_lock = threading.RLock()
_runtimes = {}
_settings = {}
_SETTINGS = (
    "cache_directory",
    "read_only_caches",
    "driver_library",
    "nvrtc_library",
    "host_compiler",
    "compile_timeout_s",
    "never_compile",
    "cpu_threads",
    "fallback",
)


_FALLBACKS = {None: 0, True: 1, False: 2, "always": 3}


@_library.LOG_FUNCTION
def _log_line(_, line):
    # Called from C: an exception would have nowhere to go.
    try:
        log.warning("%s", line.decode(errors="replace"))
    except Exception:  # noqa: BLE001
        pass


class Runtime:
    """A runtime handle with its device. Never destroyed: work it started and
    graphs that captured its kernels may outlive every Python object."""

    def __init__(self, kind, index):
        self.kind = kind
        self.index = index
        self.device = "cpu" if kind == _structs.CPU else f"cuda:{index}"
        self.library = _library.library()
        handle = ctypes.c_void_p()
        packed, self._kept = _packed_options(self.device)
        _library.check(
            self.library.logpjit_runtime_create(packed, ctypes.byref(handle))
        )
        self.handle = handle.value

    def _ask(self, function, layout):
        size = 8 + struct.calcsize(layout)
        buffer = bytearray(struct.pack("=Q", size) + bytes(size - 8))
        place = (ctypes.c_char * size).from_buffer(buffer)
        _library.check(function(self.handle, ctypes.addressof(place)))
        return struct.unpack_from(layout, buffer, 8)

    def info(self):
        name, software, *numbers = self._ask(
            self.library.logpjit_runtime_device, "=QQ4q6i"
        )
        major, minor, units = numbers[6:9]
        return {
            "device": self.device,
            "name": _text(name),
            "software": _text(software),
            "memory_bytes": numbers[2],
            "compute_capability": f"{major}.{minor}" if major else None,
            "multiprocessors": units,
        }

    def counters(self):
        names = (
            "compiled",
            "disk_hits",
            "sealed_hits",
            "rejected",
            "fallbacks",
            "loaded",
        )
        numbers = self._ask(self.library.logpjit_runtime_counters, "=6Q")
        return dict(zip(names, numbers))

    def cache(self):
        directory, others, entries, size = self._ask(
            self.library.logpjit_runtime_cache, "=4Q"
        )
        return {
            "directory": _text(directory),
            "read_only": [p for p in (_text(others) or "").split(":") if p],
            "entries": entries,
            "bytes": size,
        }

    def compiler(self):
        """Its identity; Error where there is none."""
        text = ctypes.c_char_p()
        _library.check(
            self.library.logpjit_runtime_compiler(self.handle, ctypes.byref(text))
        )
        return text.value.decode()


def _text(address):
    return ctypes.string_at(address).decode() if address else None


def _joined(paths):
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return ":".join(os.fspath(path) for path in paths)


def _packed_options(device):
    """The packed struct, and what must stay alive while it is used."""
    chosen = _settings
    texts = [device]
    directory = chosen.get("cache_directory")
    texts.append(None if directory is None else os.fspath(directory))
    others = chosen.get("read_only_caches")
    texts.append(None if others is None else _joined(others))
    texts += [
        chosen.get(name)
        for name in ("driver_library", "nvrtc_library", "host_compiler")
    ]
    buffers = [
        None if text is None else ctypes.create_string_buffer(os.fsencode(text))
        for text in texts
    ]
    packed = _structs.options(
        [ctypes.addressof(b) if b is not None else 0 for b in buffers],
        float(chosen.get("compile_timeout_s", 0)),
        ctypes.cast(_log_line, ctypes.c_void_p).value,
        bool(chosen.get("never_compile", False)),
        int(chosen.get("cpu_threads", 0)),
        _FALLBACKS[chosen.get("fallback")],
    )
    return packed, buffers


def runtime(kind, index):
    found = _runtimes.get((kind, index))
    if found is None:
        with _lock:
            found = _runtimes.get((kind, index))
            if found is None:
                found = _runtimes[kind, index] = Runtime(kind, index)
    return found


def parse_device(device):
    """(kind, index) of "cpu", "cuda", "cuda:1" or anything that prints so."""
    kind, _, number = str(device).partition(":")
    if kind == "cpu":
        return _structs.CPU, 0
    if kind == "cuda" and (not number or number.isdigit()):
        return _structs.CUDA, int(number or 0)
    raise ValueError(f"device: {device!r} is none of cpu, cuda and cuda:<number>")


def setting(name):
    """What `configure` was told last; None: the environment's."""
    return _settings.get(name)


def may_fall_back():
    return _settings.get("fallback", True) is not False


def configure(**settings):
    """Options of the runtimes made from now on; call it before the first
    operation. What is not given stays as it was, None means the environment's.

    cache_directory: where kernels are kept, "" for memory only.
    read_only_caches: list of more directories to look in, never written.
    never_compile: a kernel that is in no cache is an Error.
    driver_library, nvrtc_library, host_compiler: files to use.
    compile_timeout_s, cpu_threads: of the CPU device's compiler and executor.
    fallback: what computes where a kernel cannot be built: True the library's
        own slower kernels, and torch where it cannot at all; "always" the former
        for every call; False neither, an Error.
    """
    if settings.get("fallback") not in _FALLBACKS:
        raise ValueError(
            f"fallback: {settings['fallback']!r} is none of True, False, 'always'"
        )
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise TypeError(
                f"configure: {name!r} is none of {', '.join(_SETTINGS)}"
            )
        if value is None:
            _settings.pop(name, None)
        else:
            _settings[name] = value
    if _runtimes:
        warnings.warn(
            "logpjit.configure: runtimes in use keep their options",
            stacklevel=2,
        )


def counters(device="cpu"):
    """How often the device's runtime compiled, found in a cache, loaded and
    fell back: a dict of numbers."""
    return runtime(*parse_device(device)).counters()


def cache_info(device="cpu"):
    """Where kernels of the device's runtime are kept: `directory` (None: in
    memory only), `read_only` directories, good `entries` and their `bytes`."""
    return runtime(*parse_device(device)).cache()


def opened():
    """The runtimes there are, by device name."""
    return {made.device: made for made in _runtimes.values()}


def _forget():
    # A forked child has neither the parent's threads nor its GPU context.
    global _lock
    _lock = threading.RLock()
    _runtimes.clear()


os.register_at_fork(after_in_child=_forget)
