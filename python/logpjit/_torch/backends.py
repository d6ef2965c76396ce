"""Who computes on a device: the library, else torch. Chosen once, logged once."""

import os
import threading

import torch

from .. import _library, _structs
from .._runtime import log, may_fall_back
from .eager import Eager
from .kernels import Kernels

_lock = threading.Lock()
_chosen = {}
_reasons = {}
_forgetting = []

# What another kernel or call could fail with just as well: torch takes over.
# Wrong arguments, a full GPU and "never compile" are the caller's to hear of.
_LASTING = (
    _library.UNSUPPORTED,
    _library.UNAVAILABLE,
    _library.COMPILE_FAILED,
    _library.TIMEOUT,
)


def _open(device):
    if device.type == "cpu":
        return Kernels(_structs.CPU, 0)
    if device.type == "cuda" and torch.version.cuda is not None:
        return Kernels(_structs.CUDA, device.index or 0)
    raise _library.Error(f"there are no kernels for {device.type} devices")


def _choose(device):
    _library.library()  # a broken installation is an error, not a reason
    try:
        return _open(device)
    except _library.Error as reason:
        return _fall_back(device, reason)


def _fall_back(device, reason):
    if not may_fall_back():
        raise reason
    log.warning(
        "on %s torch computes, slower and with a chunk of fp32 logits in "
        "memory: %s",
        device,
        reason,
    )
    _reasons[device] = str(reason)
    return Eager()


def backend(device):
    found = _chosen.get(device)
    if found is None:
        with _lock:
            found = _chosen.get(device)
            if found is None:
                found = _chosen[device] = _choose(device)
    return found


def run(device, name, *arguments):
    """Calls the backend's method; where the library turns out not to be able
    to, torch takes over for good."""
    chosen = _chosen.get(device) or backend(device)
    try:
        getattr(chosen, name)(*arguments)
    except _library.Error as reason:
        if reason.status not in _LASTING or isinstance(chosen, Eager):
            raise
        with _lock:
            if isinstance(_chosen[device], Kernels):
                _chosen[device] = _fall_back(device, reason)
                for action in _forgetting:
                    action()
        getattr(_chosen[device], name)(*arguments)


def choices():
    """By device: who computes, and why not the library."""
    return {
        str(device): {"backend": made.name, "why": _reasons.get(device)}
        for device, made in _chosen.items()
    }


def on_forget(action):
    """Calls `action` whenever what was chosen is given up."""
    _forgetting.append(action)


def forget():
    """Chooses anew from now on: after a fork, and in tests."""
    global _lock
    _lock = threading.Lock()
    _chosen.clear()
    _reasons.clear()
    for action in _forgetting:
        action()


os.register_at_fork(after_in_child=forget)
