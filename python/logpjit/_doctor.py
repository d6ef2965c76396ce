"""What works on this machine, what does not, and why."""

import platform
import sys

from . import __version__, _library, _runtime


def _device(name):
    try:
        made = _runtime.runtime(*_runtime.parse_device(name))
        found = {**made.info(), "counters": made.counters()}
    except _library.Error as reason:
        return {"device": name, "unavailable": str(reason)}
    for what, ask in (("cache", made.cache), ("compiler", made.compiler)):
        try:
            found[what] = ask()
        except _library.Error as reason:
            found[what] = f"none: {reason}"
    return found


def _torch():
    torch = sys.modules.get("torch")
    if torch is None:
        return {"loaded": False}
    from ._torch import backends

    return {
        "loaded": True,
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "chosen": backends.choices(),
    }


def doctor(devices=("cpu", "cuda")):
    """A dict: the library, each device with its compiler, cache and counters,
    and who computes for the torch devices used so far ("kernels", or "torch"
    with the reason). Opens the devices it is asked about."""
    found = {
        "package": __version__,
        "python": platform.python_version(),
        "library": {"path": _library.path()},
    }
    try:
        version = _library.library().logpjit_version()
        found["library"]["version"] = version.decode()
    except _library.Error as reason:
        found["library"]["unavailable"] = str(reason)
        return found
    found["devices"] = [_device(name) for name in devices]
    found["torch"] = _torch()
    return found
