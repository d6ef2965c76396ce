"""Sharded and wrapped tensors: their local part without a copy, or a refusal
that says what to do."""


def unwrap(logits, other, other_name="ids"):
    """Plain tensors of this rank. DTensors of whole rows give their local
    rows (`other` sharded alike); a sharded vocabulary is refused."""
    local = getattr(logits, "to_local", None)
    if local is None:
        # Subclasses that torch itself handles (fake tensors, parameters).
        return logits, other
    _check_placements(logits, "logits")
    other_local = getattr(other, "to_local", None)
    if other_local is not None:
        _check_placements(other, other_name, logits.placements)
        other = other_local()
    elif other is not None and not _is_whole(logits):
        if tuple(other.shape[:1]) == tuple(logits.shape[:1]):
            raise ValueError(
                f"{other_name}: is a plain tensor of all rows, the logits are "
                f"sharded by row: pass a DTensor with placements "
                f"{list(logits.placements)}, or the local rows"
            )
    return local(), other


def _is_whole(tensor):
    return all(placement.is_replicate() for placement in tensor.placements)


def _check_placements(tensor, name, wanted=None):
    last = tensor.dim() - 1
    for placement in tensor.placements:
        if placement.is_partial():
            raise ValueError(
                f"{name}: a partial DTensor: redistribute it first"
            )
        if name != "ids" and placement.is_shard() and placement.dim in (-1, last):
            raise ValueError(
                f"{name}: sharded along the vocabulary: use "
                "logpjit.vocab_parallel with .to_local() and the mesh's process "
                "group, or redistribute by row"
            )
    if wanted is not None and tuple(tensor.placements) != tuple(wanted):
        raise ValueError(
            f"{name}: placements {list(tensor.placements)} are not the logits' "
            f"{list(wanted)}"
        )
