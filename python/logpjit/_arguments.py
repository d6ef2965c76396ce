"""Checks that NumPy and torch share; each names the argument."""

from . import _structs

TERMS = {
    "logp": _structs.LOGP,
    "entropy": _structs.ENTROPY,
    "lse": _structs.LSE,
    "squares": _structs.SQUARES,
    "argmax": _structs.ARGMAX,
}
DIRECTIONS = {"forward": False, "reverse": True}


def terms_of(outputs, has_ids):
    """Names to a bit set."""
    if isinstance(outputs, str):
        outputs = (outputs,)
    terms = 0
    for name in outputs:
        if name not in TERMS:
            raise ValueError(f"outputs: {name!r} is none of {', '.join(TERMS)}")
        terms |= TERMS[name]
    if not terms:
        raise ValueError("outputs: none is named")
    if terms & _structs.LOGP and not has_ids:
        raise TypeError("ids: needed for logp")
    return terms


def is_reverse(direction):
    if direction not in DIRECTIONS:
        raise ValueError(
            f"direction: {direction!r} is neither 'forward' (KL(teacher || "
            "student)) nor 'reverse'"
        )
    return DIRECTIONS[direction]


def columns_of(vocab, length):
    """Columns that count, of rows of `length`."""
    if vocab is None:
        return length
    if not isinstance(vocab, int) or isinstance(vocab, bool):
        raise TypeError(f"vocab: {type(vocab).__name__} is not an int")
    if not 0 < vocab <= length:
        raise ValueError(
            f"vocab: {vocab} is not between 1 and the row length {length}"
        )
    return vocab


def leading_shape(logits_shape, row_index):
    """Shape of a value per row."""
    if row_index is None:
        return tuple(logits_shape[:-1])
    return (row_index.shape[0],)


def check_ids_shape(ids_shape, leading, name="ids"):
    """One id per row or K: the leading dimensions, or one more."""
    ids_shape = tuple(ids_shape)
    if ids_shape == leading or ids_shape[:-1] == leading:
        return
    raise ValueError(
        f"{name}: shape {list(ids_shape)} is neither {list(leading)} nor "
        f"{[*leading, 'K']}"
    )


def check_shape(shape, wanted, name):
    if tuple(shape) != tuple(wanted):
        raise ValueError(
            f"{name}: shape {list(shape)} is not {list(wanted)}"
        )


def number(value, name):
    """A float, from anything that is a real number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return float(value.__float__())
    except (AttributeError, TypeError, ValueError):
        raise TypeError(
            f"{name}: {type(value).__name__} is not a number"
        ) from None
