"""Tensors to the library's calls: packing, the current stream, the launch.

Nothing here synchronises or allocates device memory.
"""

import functools

import torch

from .. import _structs
from .._library import check, workspace_bytes
from .._runtime import runtime

DTYPES = {
    torch.float32: _structs.FP32,
    torch.bfloat16: _structs.BF16,
    torch.float16: _structs.FP16,
    torch.int32: _structs.INT32,
    torch.int64: _structs.INT64,
}
_FP32 = _structs.FP32
_ABSENT = _structs.ABSENT
_tensor = _structs.tensor
_vector = _structs.vector


def _stream_of(index):
    return torch.cuda.current_stream(index).cuda_stream


# The same without making a Stream object: a microsecond less.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _stream_of)


def _no_stream():
    return None


class Kernels:
    """The library's runtime for one device."""

    name = "kernels"

    def __init__(self, kind, index):
        self.runtime = runtime(kind, index)
        self.library = self.runtime.library
        self.handle = self.runtime.handle
        self.place = (kind, index)
        self._cuda = kind == _structs.CUDA
        self.device = self.runtime.device

    def stream(self):
        return _raw_stream(self.place[1]) if self._cuda else None

    def stream_getter(self):
        """`stream` for those in a hurry."""
        if not self._cuda:
            return _no_stream
        return functools.partial(_raw_stream, self.place[1])

    def pack(self, tensor, trailing=0):
        """`trailing` dimensions are kept apart from the leading ones, which
        become two at most."""
        if tensor is None:
            return _ABSENT
        if tensor.dim() > 2 + trailing:
            tensor = tensor.view(-1, *tensor.shape[-1 - trailing :])
        return _tensor(
            tensor.data_ptr(),
            DTYPES[tensor.dtype],
            tensor.shape,
            tensor.stride(),
            *self.place,
        )

    def _saved(self, stats, row):
        """One row of the saved statistics [k, N]."""
        count, length = stats.shape
        if row >= count:
            return _ABSENT
        place = stats.data_ptr() + 4 * length * row
        return _vector(place, _FP32, length, *self.place)

    def row_forward_call(
        self, logits, ids, row_index, temperatures, options, values, stats
    ):
        """Packed; `values` are logp, entropy, lse, squares and argmax, None: not
        wanted, and the first two rows of `stats` are filled unless None."""
        pack = self.pack
        logp, entropy, lse, squares, argmax = values
        trailing = options.trailing
        outputs = (
            pack(logp, trailing),
            pack(entropy),
            pack(lse),
            pack(squares),
            pack(argmax),
            _ABSENT if stats is None else self._saved(stats, 0),
            _ABSENT if stats is None else self._saved(stats, 1),
        )
        return _structs.row_forward(
            pack(logits, 1),
            pack(ids, trailing),
            pack(row_index),
            options.vocab,
            options.temperature,
            options.softcap,
            pack(temperatures),
            outputs,
            options.carried.ignore_id if options.carried else -100,
        )

    def _launch(self, name, how, call, *more):
        """`how`: a Carried; the backward only copies, its ids are checked."""
        room = None
        if how is not None:
            call, room = self._carried(name, how, call, *more)
        function = getattr(self.library, f"logpjit_{name}")
        check(function(self.handle, call, *more, self.stream()))
        del room  # the stream's next user comes after this call

    def _carried(self, name, how, call, *more):
        validate = how.validate and "backward" not in name
        ignore_id = -100 if name == "backward" else None

        def with_room(place=0, size=0):
            options = _structs.call_options(
                validate, how.copy_strided, place, size
            )
            return _structs.with_options(call, options, ignore_id)

        size = workspace_bytes(name, with_room(), *more)
        room = torch.empty(size, dtype=torch.uint8, device=self.device)
        return with_room(room.data_ptr(), size), room

    def row_forward(self, *tensors):
        options = tensors[4]
        call = self.row_forward_call(*tensors)
        self._launch("forward", options.carried, call)

    def row_backward_call(
        self,
        logits,
        ids,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradient,
        accumulate=False,
        in_place=False,
    ):
        """Packed. `stats` [k, N]: max, sum, then entropy and squares where their
        upstream is given. `upstream`: of logp, entropy, lse, squares."""
        pack = self.pack
        trailing = options.trailing
        d_logp, d_entropy, d_lse, d_squares = upstream
        entropy_row, squares_row = options.saved_rows
        saved = (
            self._saved(stats, 0),
            self._saved(stats, 1),
            _ABSENT if d_entropy is None else self._saved(stats, entropy_row),
            _ABSENT if d_squares is None else self._saved(stats, squares_row),
        )
        return _structs.row_backward(
            pack(logits, 1),
            _ABSENT if d_logp is None else pack(ids, trailing),
            pack(row_index),
            options.vocab,
            options.temperature,
            options.softcap,
            pack(temperatures),
            saved,
            (pack(d_logp, trailing), pack(d_entropy), pack(d_lse), pack(d_squares)),
            _structs.gradient(pack(gradient, 1), accumulate, in_place),
        )

    def row_backward(self, *tensors):
        options = tensors[4]
        call = self.row_backward_call(*tensors)
        self._launch("backward", options.carried, call)

    def row_with_grad(
        self,
        logits,
        ids,
        row_index,
        temperatures,
        options,
        logp,
        stats,
        upstream,
        gradient,
        accumulate,
        in_place,
    ):
        pack = self.pack
        call = self.row_forward_call(
            logits,
            ids,
            row_index,
            temperatures,
            options,
            (logp, None, None, None, None),
            stats,
        )
        packed = _structs.row_gradient(
            (pack(upstream, options.trailing), _ABSENT, _ABSENT, _ABSENT),
            _structs.gradient(pack(gradient, 1), accumulate, in_place),
        )
        self._launch("forward_with_grad", options.carried, call, packed)

    def _kl_inputs(self, student, teacher, row_index, temperatures, options):
        pack = self.pack
        transforms = tuple(
            (scalar, cap, pack(rows))
            for scalar, cap, rows in zip(
                options.temperatures, options.softcaps, temperatures
            )
        )
        return _structs.kl_inputs(
            pack(student, 1),
            pack(teacher, 1),
            pack(row_index),
            options.vocab,
            transforms,
            options.reverse,
        )

    def kl_forward_call(
        self, student, teacher, row_index, temperatures, options, value, stats
    ):
        """Packed. `stats`: None or [5, N], whose last four rows are filled: maximum and
        sum of the student, then of the teacher."""
        inputs = self._kl_inputs(
            student, teacher, row_index, temperatures, options
        )
        rows = [_ABSENT] * 4
        if stats is not None:
            rows = [self._saved(stats, row) for row in range(1, 5)]
        return _structs.kl_forward(inputs, (self.pack(value), *rows))

    def kl_forward(self, *tensors):
        options = tensors[4]
        call = self.kl_forward_call(*tensors)
        self._launch("kl_forward", options.carried, call)

    def kl_backward_call(
        self,
        student,
        teacher,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradients,
    ):
        """Packed. `gradients`: of student and teacher, None: not wanted. `stats`: the
        value, then the forward's four."""
        inputs = self._kl_inputs(
            student, teacher, row_index, temperatures, options
        )
        return _structs.kl_backward(
            inputs,
            [self._saved(stats, row) for row in range(5)],
            self.pack(upstream),
            *[_structs.gradient(self.pack(made, 1)) for made in gradients],
        )

    def kl_backward(self, *tensors):
        options = tensors[4]
        call = self.kl_backward_call(*tensors)
        self._launch("kl_backward", options.carried, call)
