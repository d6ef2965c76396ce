"""Operations over a vocabulary that is spread over a process group: one
all-gather of a few numbers per row, none in the backward."""

import ctypes
import struct

import torch
from torch import distributed

from .. import _arguments, _checks, _library, _structs
from . import backends, divergence, rows
from .arrays import ARRAYS
from .divergence import KlOptions
from .first_order import guard
from .kernels import Kernels
from .rows import RowOptions

_PLACE = struct.Struct("=QQii")
_BUFFERS = struct.Struct("=QQQQ")
_SIZES = struct.Struct("=QQQ")
ORDERS = {"ranks": 0, "segments": 1}
_handles = {}
_disagreements = {}


def _bounds_of(bounds, ranks, width, rank):
    """First column of each rank and the end: [ranks + 1]."""
    if bounds is None:
        return tuple(width * number for number in range(ranks + 1))
    bounds = tuple(int(bound) for bound in bounds)
    if len(bounds) != ranks + 1:
        raise ValueError(
            f"bounds: {len(bounds)} numbers for a process group of {ranks}: "
            f"pass the first column of each rank and the end, {ranks + 1}"
        )
    if bounds[0] != 0 or list(bounds) != sorted(bounds):
        raise ValueError(f"bounds: {list(bounds)} do not ascend from 0")
    if bounds[rank + 1] - bounds[rank] != width:
        raise ValueError(
            f"bounds: give rank {rank} {bounds[rank + 1] - bounds[rank]} "
            f"columns, its logits have {width}"
        )
    return bounds


def _handle(library, bounds, vocab):
    """The library's partition; made once for each."""
    key = bounds, vocab
    found = _handles.get(key)
    if found is None:
        ranks = len(bounds) - 1
        array = (ctypes.c_int64 * (ranks + 1))(*bounds)
        made = ctypes.c_void_p()
        place = ctypes.addressof(array)
        _library.check(
            library.logpjit_shards_create(
                place, place + 8, ranks, vocab, ctypes.byref(made)
            )
        )
        found = _handles[key] = made.value
    return found


class Group:
    """A process group, this rank's columns, and the calls about them."""

    def __init__(self, group, bounds, vocab, order, logits):
        if not distributed.is_available() or not distributed.is_initialized():
            raise RuntimeError(
                "group: torch.distributed is not initialised: call "
                "init_process_group first"
            )
        if group is not None and not isinstance(group, distributed.ProcessGroup):
            raise TypeError(
                f"group: {type(group).__name__} is no torch process group"
            )
        if order not in ORDERS:
            raise ValueError(f"order: {order!r} is none of {', '.join(ORDERS)}")
        self.group = group
        self.ranks = distributed.get_world_size(group)
        rank = distributed.get_rank(group)
        if rank < 0:
            raise ValueError("group: this process is no member of it")
        self.kernels = backends.backend(logits.device)
        if not isinstance(self.kernels, Kernels):
            raise _library.Error(
                f"logits: a sharded vocabulary needs the library's kernels; on "
                f"{logits.device} torch computes (see logpjit.doctor())"
            )
        bounds = _bounds_of(bounds, self.ranks, logits.shape[-1], rank)
        self.columns = bounds[-1]
        if vocab is not None:
            _arguments.columns_of(vocab, self.columns)
            self.columns = vocab
        shards = _handle(self.kernels.library, bounds, vocab or 0)
        self.place = _PLACE.pack(_PLACE.size, shards, rank, ORDERS[order])

    def _ask(self, name, *arguments):
        function = getattr(self.kernels.library, f"logpjit_shard_{name}")
        _library.check(function(self.kernels.handle, *arguments))

    def _sizes(self, kind, call):
        buffer = bytearray(_SIZES.pack(_SIZES.size, 0, 0))
        view = (ctypes.c_char * _SIZES.size).from_buffer(buffer)
        place = ctypes.addressof(view)
        self._ask(f"{kind}_sizes", call, self.place, place)
        return _SIZES.unpack(buffer)[1:]

    def values(self, kind, call, device):
        """Statistics, the all-gather, the merge: fills the call's outputs."""
        mine_bytes, word_bytes = self._sizes(kind, call)
        stream = self.kernels.stream()
        mine = torch.empty(mine_bytes, dtype=torch.uint8, device=device)
        words = None
        if word_bytes:
            words = torch.empty(word_bytes // 4, dtype=torch.int32, device=device)
        word = disagreement_word(device)
        self._ask(
            f"{kind}_statistics", call, self.place, _packed(mine, words), stream
        )
        gathered = torch.empty(
            mine_bytes * self.ranks, dtype=torch.uint8, device=device
        )
        distributed.all_gather_into_tensor(gathered, mine, group=self.group)
        if words is not None:
            distributed.all_reduce(words, group=self.group)
        self._ask(
            f"{kind}_merge",
            call,
            self.place,
            _packed(gathered, words, word),
            stream,
        )
        if device.type == "cpu":
            check(device)

    def gradient(self, kind, call):
        self._ask(f"{kind}_gradient", call, self.place, self.kernels.stream())


def _packed(*tensors):
    pointers = [0 if t is None else t.data_ptr() for t in tensors]
    return _BUFFERS.pack(_BUFFERS.size, *pointers, *[0] * (3 - len(pointers)))


def disagreement_word(device):
    found = _disagreements.get(device)
    if found is None:
        found = torch.zeros(1, dtype=torch.int32, device=device)
        _disagreements[device] = found
    return found


def check(device):
    """Waits for the device; raises, on all ranks alike, when some rank made
    another call than the others (its values were NaN)."""
    word = disagreement_word(torch.empty(0, device=device).device)
    rank = int(word.item()) - 1
    if rank < 0:
        return
    word.zero_()
    raise ValueError(
        f"rank {rank} did not make the same call as the others: rows, ids per "
        "row, dtype, bounds, temperature and outputs must be equal"
    )


def _check_logits(logits, name, device):
    """A rank may hold no columns."""
    _checks.check_logits(ARRAYS, logits, name, device, least_columns=0)
    if logits.dim() > 3:
        raise ValueError(
            f"{name}: shape {list(logits.shape)} has more than 3 dimensions: "
            "flatten the leading ones"
        )


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, ids, row_index, temperatures, options, group):
        terms = options.terms
        shapes = rows.value_shapes(logits, ids, row_index)
        values = tuple(
            torch.empty(shape, dtype=dtype, device=logits.device)
            if terms & bit
            else None
            for shape, dtype, bit in zip(
                shapes, rows.VALUE_DTYPES, rows.VALUE_BITS
            )
        )
        count = shapes[1].numel() if row_index is None else shapes[1][0]
        stats = torch.empty(
            (rows.saved_count(terms), count), device=logits.device
        )
        tensors = (logits, ids, row_index, temperatures, options)
        call = group.kernels.row_forward_call(*tensors, values, stats)
        group.values("row", call, logits.device)
        rows.keep_values(values, stats, options)
        ctx.save_for_backward(logits, ids, row_index, temperatures, stats)
        ctx.options = options
        ctx.group = group
        ctx.set_materialize_grads(False)
        return values

    @staticmethod
    def backward(ctx, *upstream):
        upstream = upstream[:4]
        gradient = None
        if any(g is not None for g in upstream):
            saved = ctx.saved_tensors
            gradient = guard(
                _row_gradient, ctx.group, ctx.options, saved, upstream
            )
        return gradient, None, None, None, None, None


def _row_gradient(group, options, saved, upstream):
    *tensors, stats = saved
    gradient = rows.new_gradient(tensors[0], tensors[2])
    call = group.kernels.row_backward_call(
        *tensors, options, stats, upstream, gradient
    )
    group.gradient("row", call)
    return gradient


def row_values(
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
):
    """The five results, None where not asked for."""
    terms = _arguments.terms_of(outputs, ids is not None)
    if terms & _structs.ARGMAX:
        raise ValueError("outputs: argmax is not available over shards")
    _check_logits(logits, "logits", logits.device)
    group = Group(group, bounds, vocab, order, logits)
    leading = tuple(logits.shape[:-1])
    trailing = 0
    if terms & _structs.LOGP:
        ids, _ = _checks.checked_ids(
            ARRAYS, ids, logits, leading, ignore_index, group.columns
        )
        trailing = ids.dim() - len(leading)
    else:
        ids = None
    scalar, temperatures = _checks.checked_temperature(
        ARRAYS, temperature, leading, logits.device
    )
    softcap = _arguments.number(softcap, "softcap")
    options = RowOptions(terms, scalar, softcap, 0, trailing)
    return _Rows.apply(logits, ids, None, temperatures, options, group)


class _Kl(torch.autograd.Function):
    @staticmethod
    def forward(ctx, student, teacher, student_rows, teacher_rows, options, group):
        leading = student.shape[:-1]
        value = torch.empty(leading, device=student.device)
        stats = torch.empty((5, leading.numel()), device=student.device)
        temperatures = (student_rows, teacher_rows)
        tensors = (student, teacher, None, temperatures, options)
        call = group.kernels.kl_forward_call(*tensors, value, stats)
        group.values("kl", call, student.device)
        stats[0].copy_(value.view(-1))
        ctx.save_for_backward(student, teacher, *temperatures, stats)
        ctx.options = options
        ctx.group = group
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, upstream):
        if upstream is None:
            return (None,) * 6
        made = guard(
            _kl_gradients,
            ctx.group,
            ctx.options,
            ctx.saved_tensors,
            upstream,
            ctx.needs_input_grad[:2],
        )
        return (*made, None, None, None, None)


def _kl_gradients(group, options, saved, upstream, needed):
    student, teacher, *temperatures, stats = saved
    gradients = tuple(
        rows.new_gradient(side, None) if wanted else None
        for side, wanted in zip((student, teacher), needed)
    )
    call = group.kernels.kl_backward_call(
        student,
        teacher,
        None,
        temperatures,
        options,
        stats,
        upstream,
        gradients,
    )
    group.gradient("kl", call)
    return gradients


def kl(
    student,
    teacher,
    direction,
    group,
    bounds,
    order,
    temperatures,
    softcaps,
    vocab,
):
    reverse = _arguments.is_reverse(direction)
    device = student.device
    _check_logits(student, "student", device)
    _check_logits(teacher, "teacher", device)
    _arguments.check_shape(teacher.shape, student.shape, "teacher")
    group = Group(group, bounds, vocab, order, student)
    leading = tuple(student.shape[:-1])
    names = ("temperature", "teacher_temperature")
    (scalar, per_row), (teacher_scalar, teacher_per_row) = (
        _checks.checked_temperature(ARRAYS, value, leading, device, name)
        for value, name in zip(temperatures, names)
    )
    caps = tuple(_arguments.number(cap, "softcap") for cap in softcaps)
    options = KlOptions((scalar, teacher_scalar), caps, 0, reverse)
    return _Kl.apply(
        student, teacher, per_row, teacher_per_row, options, group
    )
