"""The checks of arrays, for torch tensors and NumPy arrays alike. Each names the
argument: TypeError for what is of another kind or dtype, ValueError for the rest.

Both kinds are seen through an `Arrays`.
"""

from typing import Any, NamedTuple

from . import _arguments

FLOATS = ("float32", "bfloat16", "float16")
IDS = ("int64", "int32")
NO_ID = -(2**31)  # outside every vocabulary, and not an id one writes


class Arrays:
    """One kind of arrays."""

    kind = "array"  # with its article, for messages
    to_contiguous = ".contiguous()"

    def holds(self, value):
        """Whether it is of this kind."""
        raise NotImplementedError

    def dtype(self, array):
        """Its name."""
        raise NotImplementedError

    def place(self, array):
        """The device."""
        return "cpu"

    def odd_layout(self, array):
        """What it is instead of dense, or None."""
        return None

    def strides(self, array):
        """In elements."""
        raise NotImplementedError

    def needs_gradient(self, array):
        return False

    def flat(self, array):
        """Leading dimensions as two, without a copy; None where impossible."""
        raise NotImplementedError

    def contiguous(self, array):
        raise NotImplementedError

    def spread(self, scalar, shape):
        """An array of no dimensions as one of this shape."""
        raise NotImplementedError

    def replaced(self, ids, old, new):
        """A copy with the one id in place of the other."""
        raise NotImplementedError


class RowInputs(NamedTuple):
    """Of a row operation, checked."""

    ids: Any
    row_index: Any
    temperatures: Any  # one for each row, or None
    temperature: float
    softcap: float
    columns: int
    trailing: int  # 1 where ids have a dimension K
    leading: tuple  # shape of a value per row
    carried: Any  # a Carried, or None


def check(arrays, value, name, dtypes, place, like="the logits are"):
    if not arrays.holds(value):
        raise TypeError(
            f"{name}: {type(value).__name__} is not {arrays.kind}, {like}"
        )
    layout = arrays.odd_layout(value)
    if layout is not None:
        raise TypeError(f"{name}: is {layout}: a dense one is needed")
    if arrays.dtype(value) not in dtypes:
        raise TypeError(
            f"{name}: dtype {arrays.dtype(value)} is not {' or '.join(dtypes)}"
        )
    if arrays.place(value) != place:
        raise ValueError(
            f"{name}: lies on {arrays.place(value)}, the logits on {place}"
        )


class Carried(NamedTuple):
    """How a call is carried out, where not as usual."""

    validate: bool
    copy_strided: bool
    ignore_id: int = NO_ID


def carried(arguments, ignore_index=NO_ID):
    validate, copy = bool(arguments.validate), bool(arguments.copy_strided)
    if not validate and not copy:
        return None
    return Carried(validate, copy, ignore_index)


def check_logits(
    arrays, logits, name, place, least_columns=1, may_copy=False
):
    check(arrays, logits, name, FLOATS, place)
    shape = list(logits.shape)
    if len(shape) < 2:
        raise ValueError(f"{name}: shape {shape} is not [..., V]")
    if shape[-1] < least_columns:
        raise ValueError(f"{name}: V is 0")
    strides = arrays.strides(logits)
    if strides is None:
        raise ValueError(f"{name}: a stride is not a multiple of the element")
    if shape[-1] > 1 and strides[-1] != 1 and not may_copy:
        raise ValueError(
            f"{name}: stride {strides[-1]} along the vocabulary: rows must be "
            f"contiguous, pass {arrays.to_contiguous} or copy_strided=True"
        )
    if len(shape) > 3 and arrays.flat(logits) is None:
        raise ValueError(
            f"{name}: strides {list(strides)} cannot be read as [B, S, V]: "
            f"pass {arrays.to_contiguous}"
        )


def leading_shape(logits, row_index):
    """Shape of a value per row."""
    if row_index is None:
        return tuple(logits.shape[:-1])
    return (row_index.shape[0],)


def checked_index(arrays, row_index, place):
    if row_index is None:
        return None
    check(arrays, row_index, "row_index", ("int64",), place)
    if len(row_index.shape) != 1:
        raise ValueError("row_index: is not one-dimensional")
    return arrays.contiguous(row_index)


def checked_ids(arrays, ids, logits, leading, ignore_index, columns):
    """(ids, the one to ignore): outside the vocabulary."""
    check(arrays, ids, "ids", IDS, arrays.place(logits))
    shape = tuple(ids.shape)
    if shape != leading and shape[:-1] != leading:
        raise ValueError(
            f"ids: shape {list(shape)} is neither {list(leading)} nor "
            f"{[*leading, 'K']}"
        )
    ids = _evenly_strided(arrays, ids, leading)
    ignore_index = _arguments.integer(ignore_index, "ignore_index")
    if 0 <= ignore_index < columns:
        return arrays.replaced(ids, ignore_index, NO_ID), NO_ID
    return ids, ignore_index


def checked_temperature(arrays, value, leading, place, name="temperature"):
    """(scalar, array with one for each row or None)."""
    if isinstance(value, float):
        return value, None
    if not arrays.holds(value):
        return _arguments.number(value, name), None
    if arrays.needs_gradient(value):
        raise ValueError(f"{name}: has no gradient: pass .detach()")
    check(arrays, value, name, ("float32",), place)
    if len(value.shape) == 0:
        value = arrays.spread(value, leading)
    _arguments.check_shape(value.shape, leading, name)
    return 1.0, _evenly_strided(arrays, value, leading)


def _evenly_strided(arrays, array, leading):
    """Leading dimensions become two where there are more."""
    if len(leading) > 2 or arrays.strides(array) is None:
        return arrays.contiguous(array)
    return array


def row_inputs(arrays, logits, ids, arguments):
    place = arrays.place(logits)
    may_copy = arguments.copy_strided and not arguments.in_place
    check_logits(arrays, logits, "logits", place, may_copy=may_copy)
    index = checked_index(arrays, arguments.row_index, place)
    leading = leading_shape(logits, index)
    columns = _arguments.columns_of(arguments.vocab, logits.shape[-1])
    trailing, ignored = 0, NO_ID
    if ids is not None:
        ids, ignored = checked_ids(
            arrays, ids, logits, leading, arguments.ignore_index, columns
        )
        trailing = len(ids.shape) - len(leading)
    scalar, per_row = checked_temperature(
        arrays, arguments.temperature, leading, place
    )
    softcap = _arguments.number(arguments.softcap, "softcap")
    check_accumulate(arrays, logits, arguments)
    return RowInputs(
        ids,
        index,
        per_row,
        scalar,
        softcap,
        columns,
        trailing,
        leading,
        carried(arguments, ignored),
    )


def check_accumulate(arrays, logits, arguments):
    accumulate = arguments.accumulate
    if accumulate is None:
        return
    place = arrays.place(logits)
    check_logits(arrays, accumulate, "accumulate", place)
    check(arrays, accumulate, "accumulate", (arrays.dtype(logits),), place)
    _arguments.check_shape(accumulate.shape, logits.shape, "accumulate")
    if arguments.in_place:
        raise ValueError("in_place, accumulate: exclude each other")
    if arrays.needs_gradient(accumulate):
        raise ValueError("accumulate: requires grad: pass .detach()")


def check_upstream(arrays, upstream, ids, place):
    check(arrays, upstream, "upstream", ("float32",), place)
    _arguments.check_shape(upstream.shape, ids.shape, "upstream")


class KlInputs(NamedTuple):
    """Of a divergence, checked; pairs are of student and teacher."""

    row_index: Any
    per_row: tuple
    temperatures: tuple
    softcaps: tuple
    columns: int
    reverse: bool
    leading: tuple
    carried: Any


def kl_inputs(arrays, student, teacher, arguments):
    reverse = _arguments.is_reverse(arguments.direction)
    place = arrays.place(student)
    for side, name in ((student, "student"), (teacher, "teacher")):
        check_logits(
            arrays, side, name, place, may_copy=arguments.copy_strided
        )
    if arguments.vocab is None:
        _arguments.check_shape(teacher.shape, student.shape, "teacher")
    _arguments.check_shape(teacher.shape[:-1], student.shape[:-1], "teacher")
    index = checked_index(arrays, arguments.row_index, place)
    leading = leading_shape(student, index)
    columns = _arguments.columns_of(arguments.vocab, student.shape[-1])
    _arguments.columns_of(columns, teacher.shape[-1])
    sides = kl_transforms(arrays, arguments, leading, place)
    return KlInputs(
        index, *sides, columns, reverse, leading, carried(arguments)
    )


def kl_transforms(arrays, arguments, leading, place):
    """(arrays per row, scalars, softcaps)."""
    (scalar, per_row), (teacher_scalar, teacher_per_row) = (
        checked_temperature(arrays, value, leading, place, name)
        for value, name in zip(
            arguments.temperatures, ("temperature", "teacher_temperature")
        )
    )
    cap, teacher_cap = arguments.softcaps
    softcaps = (
        _arguments.number(cap, "softcap"),
        _arguments.number(teacher_cap, "teacher_softcap"),
    )
    return (per_row, teacher_per_row), (scalar, teacher_scalar), softcaps
