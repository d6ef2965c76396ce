"""The operations where each rank of a torch process group holds a slice of the
vocabulary.

Logits are this rank's columns, [N, W] or [B, S, W]; ids are of the whole
vocabulary and, like all else, the same on every rank. Values are those of the
whole vocabulary, with the same bits on all ranks; gradients are of this rank's
columns and need no communication, provided every rank back-propagates the same
loss. The one collective is an all-gather of 8 to 28 bytes per row and rank (and
4 per id), done by torch on the current stream.

Common arguments, besides those of `logpjit.operations`:

group: a torch process group; None is the default one.
bounds: the first column of each rank, and the end: [ranks + 1]. Ranks may be
    uneven or empty. None: every rank holds as many columns, in rank order.
vocab: columns of the whole that count; the last ones are padding.
order: "ranks", or "segments" for the bits of the unsharded operation on any
    number of ranks, with bounds cut at quarters of the vocabulary's tiles; a few
    KiB more per row are gathered.

A rank that makes another call than the others makes the values NaN on all; on
the CPU it raises at once, on a GPU `check` tells, when called. Not for use within
torch.compile: it breaks the graph.
"""

from .operations import RowValues


def _shards():
    from ._torch import shards

    return shards


def row_values(
    logits,
    ids=None,
    *,
    outputs=("logp", "entropy"),
    group=None,
    bounds=None,
    order="ranks",
    temperature=1.0,
    softcap=0.0,
    ignore_index=-100,
    vocab=None,
):
    """Any of logp, entropy, lse and squares with one collective, as RowValues."""
    found = _shards().row_values(
        logits,
        ids,
        outputs,
        group,
        bounds,
        order,
        temperature,
        softcap,
        ignore_index,
        vocab,
    )
    return RowValues(*found)


def logprobs(logits, ids, **options):
    """Log-probabilities of `ids`, in their shape; options as in row_values."""
    return row_values(logits, ids, outputs=("logp",), **options).logp


def entropy(logits, **options):
    """Entropy of each row of the whole; options as in row_values."""
    return row_values(logits, outputs=("entropy",), **options).entropy


def logprobs_and_entropy(logits, ids, **options):
    """(logprobs, entropy) with one collective; options as in row_values."""
    found = row_values(logits, ids, outputs=("logp", "entropy"), **options)
    return found.logp, found.entropy


def kl(
    student,
    teacher,
    *,
    direction="forward",
    group=None,
    bounds=None,
    order="ranks",
    temperature=1.0,
    teacher_temperature=None,
    softcap=0.0,
    teacher_softcap=None,
    vocab=None,
):
    """KL(teacher || student), or the reverse, of student and teacher sharded
    alike."""
    return _shards().kl(
        student,
        teacher,
        direction,
        group,
        bounds,
        order,
        (
            temperature,
            temperature if teacher_temperature is None else teacher_temperature,
        ),
        (softcap, softcap if teacher_softcap is None else teacher_softcap),
        vocab,
    )


def check(device="cuda"):
    """Waits for the device, then raises ValueError, on all ranks alike, when a
    rank has made another call than the others."""
    _shards().check(device)
