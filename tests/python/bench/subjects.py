"""What is compared: a function of ours and what it replaces."""

import dataclasses
import functools
import importlib.util
from typing import Any, Callable, Optional

import torch

import logpjit


@dataclasses.dataclass
class Subject:
    """Both functions are made of (ids, extra) and take the logits."""

    name: str
    rows: int
    ours: Callable
    peer: str = ""
    theirs: Optional[Callable] = None
    asked: float = 0.0  # most that ours may take of theirs
    extra: Callable = lambda logits: None


def inputs(rows, vocab):
    """(logits, ids, upstream)."""
    torch.manual_seed(0)
    logits = torch.randn(rows, vocab, device="cuda", dtype=torch.bfloat16)
    logits *= 2
    ids = torch.randint(0, vocab, (rows,), device="cuda")
    return logits, ids, torch.randn(rows, device="cuda")


def _teacher(logits):
    return (torch.randn_like(logits) * 2).to(logits.dtype)


@functools.cache
def _compiled(function):
    return torch.compile(function, dynamic=False)


def _entropy(x):
    log_p = torch.log_softmax(x.float(), -1)
    return -(log_p.exp() * log_p).sum(-1)


def _reverse_kl(x, teacher):
    a = torch.log_softmax(x.float(), -1)
    b = torch.log_softmax(teacher.float(), -1)
    return (a.exp() * (a - b)).sum(-1)


def _added(values):
    logp, entropy = values
    return logp + entropy


def _cross_entropy(file) -> Any:
    """flash-attn's function, of its file or of the installed package; None
    where there is neither."""
    if file is None:
        try:
            from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
        except ImportError:
            return None
        return cross_entropy_loss
    spec = importlib.util.spec_from_file_location("flash_attn_file", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cross_entropy_loss


def all_of(rows, flash_attn):
    """Subjects, in the order they are measured."""
    loss = _cross_entropy(flash_attn)
    theirs = None
    if loss is not None:

        def theirs(ids, _):
            return lambda x: -loss(x, ids)[0]

    def ours(ids, _):
        return lambda x: logpjit.logprobs(x, ids)

    few = rows[0]
    made = [
        Subject("logprobs", count, ours, "flash-attn", theirs, 0.90)
        for count in rows
    ]
    made.append(
        Subject(
            "entropy",
            few,
            lambda ids, _: logpjit.entropy,
            "torch.compile",
            lambda ids, _: _compiled(_entropy),
            0.45,
        )
    )
    made.append(
        Subject(
            "reverse KL",
            few,
            lambda ids, t: lambda x: logpjit.kl(x, t, direction="reverse"),
            "torch.compile",
            lambda ids, t: lambda x: _compiled(_reverse_kl)(x, t),
            0.40,
            _teacher,
        )
    )
    made.append(
        Subject(
            "logprobs_and_entropy",
            few,
            lambda ids, _: lambda x: _added(logpjit.logprobs_and_entropy(x, ids)),
        )
    )
    return made
