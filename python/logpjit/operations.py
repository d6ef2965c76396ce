"""The operations, for torch tensors (CUDA or CPU) and NumPy arrays (CPU).

Logits are [..., V] in fp32, bf16 or fp16 with contiguous rows; any strides
before that, so views such as logits[:, :-1] are read in place. Ids are int32 or
int64, one per row or K per row (a last dimension more). Values are fp32. Rows
are independent: a row's bits depend on that row alone.

Common arguments:

temperature: a number > 0, or an fp32 tensor with one per row. No gradient.
softcap: cap * tanh(x / cap) before the temperature; 0 for none.
ignore_index: ids equal to it, and all ids outside [0, V), give value 0 and no
    gradient.
vocab: columns that count; the rest is padding, never read, its gradient 0.
row_index: int64 [M], the rows to work on, by number in the flattened rows; ids
    and values then have M rows, other rows have gradient 0.
in_place: the backward writes the gradient over the logits, which nothing else
    may need any more (torch raises when something does). Logits that need no
    copy of their gradient save [N, V] of memory.
accumulate: a tensor like the logits, to which the backward adds the gradient
    with one rounding, for several losses on one logits tensor. Autograd is given
    none: compute the losses on leaf = logits.detach().requires_grad_(), call
    backward on each, then logits.backward(accumulate).
validate: ValueError for an id that does not exist and is not `ignore_index`, and
    for such a row number, before anything is launched. Waits for the GPU.
copy_strided: logits whose vocabulary is not contiguous are copied for the time
    of the call, instead of refused.

Wrong arguments are TypeError or ValueError naming the argument, before anything
is launched. Gradients are of first order: differentiating one raises. No call
synchronises with the GPU unless told to validate.
"""

import importlib
import sys
from typing import Any, NamedTuple

from ._arguments import (
    KlArguments,
    RowArguments,
    kl_arguments,
    need_ids,
    row_arguments,
    takes,
    terms_of,
)
from ._structs import ENTROPY, LOGP

_FRONTS = {}


class RowValues(NamedTuple):
    """Results of `row_values`; None where not asked for."""

    logp: Any = None
    entropy: Any = None
    lse: Any = None
    squares: Any = None
    argmax: Any = None


def _learn(kind, place):
    front = importlib.import_module(f"{__package__}.{place}")
    _FRONTS[kind] = front
    return front


def _front_of(kind):
    """The module that works on arrays of this type."""
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        if package == "torch" and "torch" in sys.modules:
            return _learn(kind, "_torch.front")
        if package == "numpy" and base.__name__ == "ndarray":
            return _learn(kind, "_numpy")
    raise TypeError(
        f"logits: {kind.__name__} is neither a torch tensor nor a NumPy array"
    )


if "torch" in sys.modules:
    # Known beforehand, torch.compile can trace the look-up below.
    _front_of(sys.modules["torch"].Tensor)
    _front_of(sys.modules["torch"].nn.Parameter)


@takes(RowArguments)
def logprobs(logits, ids, **options):
    """Log-probabilities of `ids`, in their shape: log_softmax(logits / T) at
    each id. One read of the logits; the backward reads and writes once more."""
    front = _FRONTS.get(type(logits)) or _front_of(type(logits))
    return front.logprobs(logits, ids, row_arguments(options))


@takes(RowArguments)
def entropy(logits, **options):
    """Entropy of each row's softmax(logits / T), in nats."""
    front = _FRONTS.get(type(logits)) or _front_of(type(logits))
    return front.row_values(logits, None, ENTROPY, row_arguments(options))[1]


@takes(RowArguments)
def logprobs_and_entropy(logits, ids, **options):
    """(logprobs, entropy) in the reads and writes of one of them."""
    front = _FRONTS.get(type(logits)) or _front_of(type(logits))
    need_ids(ids is not None)
    terms = LOGP | ENTROPY
    return front.row_values(logits, ids, terms, row_arguments(options))[:2]


@takes(RowArguments)
def row_values(logits, ids=None, *, outputs=("logp", "entropy"), **options):
    """Any of logp, entropy, lse (log-sum-exp), squares (sum of p^2) and argmax
    (int64, without gradient) in one sweep, as RowValues."""
    front = _FRONTS.get(type(logits)) or _front_of(type(logits))
    terms = terms_of(outputs, ids is not None)
    if not terms & LOGP:
        ids = None
    return RowValues(
        *front.row_values(logits, ids, terms, row_arguments(options))
    )


@takes(RowArguments)
def logprobs_with_grad(logits, ids, upstream, **options):
    """(logprobs, gradient of sum(upstream * logprobs)) when the upstream
    gradient is known beforehand: one read and one write in a single launch
    where the row fits on chip. No autograd. `upstream` is fp32 in the shape of
    the ids; the gradient is in the logits' dtype and shape."""
    front = _FRONTS.get(type(logits)) or _front_of(type(logits))
    need_ids(ids is not None)
    arguments = row_arguments(options)
    return front.logprobs_with_grad(logits, ids, upstream, arguments)


@takes(KlArguments)
def kl(student, teacher, **options):
    """Divergence of each row: KL(teacher || student) for "forward",
    KL(student || teacher) for "reverse". Dtypes, strides and transforms of the
    two may differ; the teacher's transform is the student's unless given. A
    teacher that needs no gradient gets none and costs none."""
    front = _FRONTS.get(type(student)) or _front_of(type(student))
    return front.kl(student, teacher, kl_arguments(options))
