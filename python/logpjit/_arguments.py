"""The arguments of the operations: one table of each kind, and the checks of
what is no array. `operations` says what they mean."""

import inspect
from typing import Any, NamedTuple

from . import _structs

TERMS = {
    "logp": _structs.LOGP,
    "entropy": _structs.ENTROPY,
    "lse": _structs.LSE,
    "squares": _structs.SQUARES,
    "argmax": _structs.ARGMAX,
}
DIRECTIONS = {"forward": False, "reverse": True}


class RowArguments(NamedTuple):
    """Of the row operations, besides arrays that have a place of their own."""

    temperature: Any = 1.0
    softcap: Any = 0.0
    ignore_index: Any = -100
    vocab: Any = None
    row_index: Any = None
    in_place: Any = False
    accumulate: Any = None
    validate: Any = False
    copy_strided: Any = False


class KlArguments(NamedTuple):
    """Of the divergence."""

    direction: Any = "forward"
    temperature: Any = 1.0
    teacher_temperature: Any = None
    softcap: Any = 0.0
    teacher_softcap: Any = None
    vocab: Any = None
    row_index: Any = None
    validate: Any = False
    copy_strided: Any = False

    @property
    def temperatures(self):
        """The teacher's is the student's unless given."""
        if self.teacher_temperature is None:
            return self.temperature, self.temperature
        return self.temperature, self.teacher_temperature

    @property
    def softcaps(self):
        if self.teacher_softcap is None:
            return self.softcap, self.softcap
        return self.softcap, self.teacher_softcap


ROW_DEFAULTS = RowArguments()
KL_DEFAULTS = KlArguments()


def row_arguments(options):
    return _given(options, RowArguments) if options else ROW_DEFAULTS


def kl_arguments(options):
    return _given(options, KlArguments) if options else KL_DEFAULTS


def _given(options, table):
    try:
        return table(**options)
    except TypeError:
        unknown = [name for name in options if name not in table._fields]
        raise TypeError(
            f"{', '.join(unknown)}: unexpected; the arguments are "
            f"{', '.join(table._fields)}"
        ) from None


def takes(table):
    """Shows the table's members as the keyword arguments of a function that
    takes **options."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    members = [
        inspect.Parameter(name, keyword, default=table._field_defaults[name])
        for name in table._fields
    ]

    def described(function):
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        function.__signature__ = signature.replace(parameters=[*own, *members])
        return function

    return described


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
    if terms & _structs.LOGP:
        need_ids(has_ids)
    return terms


def need_ids(has_ids):
    if not has_ids:
        raise TypeError("ids: needed for logp")


def is_reverse(direction):
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise ValueError(
            f"direction: {direction!r} is neither 'forward' (KL(teacher || "
            "student)) nor 'reverse'"
        )
    return DIRECTIONS[direction]


def columns_of(vocab, length):
    """Columns that count, of rows of `length`."""
    if vocab is None:
        return length
    vocab = integer(vocab, "vocab")
    if not 0 < vocab <= length:
        raise ValueError(
            f"vocab: {vocab} is not between 1 and the row length {length}"
        )
    return vocab


def integer(value, name):
    """An int, from anything that is a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    kind = type(value).__name__
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {kind} is not an int")
    try:
        return value.__index__()
    except TypeError:
        raise TypeError(f"{name}: {kind} is not an int") from None


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


def check_shape(shape, wanted, name):
    if tuple(shape) != tuple(wanted):
        raise ValueError(
            f"{name}: shape {list(shape)} is not {list(wanted)}"
        )
