"""Log-probabilities over a vocabulary, and what trainers need around them.

The names below are loaded when first used, and torch only for its tensors, so
that importing this package costs next to nothing.
"""

import importlib

__version__ = "0.1.0"

_PLACES = {
    "Error": "_library",
    "RowValues": "operations",
    "cache_info": "_runtime",
    "configure": "_runtime",
    "counters": "_runtime",
    "cross_entropy_loss": "drop_ins",
    "doctor": "_doctor",
    "entropy": "operations",
    "entropy_from_logits": "drop_ins",
    "kl": "operations",
    "launch_config": "_prepare",
    "logprobs": "operations",
    "logprobs_and_entropy": "operations",
    "logprobs_from_logits": "drop_ins",
    "logprobs_with_grad": "operations",
    "prepare": "_prepare",
    "pretune": "_pretune",
    "row_values": "operations",
    "selective_log_softmax": "drop_ins",
}

_MODULES = ("drop_ins", "vocab_parallel")
__all__ = sorted([*_PLACES, *_MODULES, "__version__"])


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
