"""Tensors to the library's calls: packing, the current stream, the launch.

Nothing here synchronises or allocates device memory.
"""

import torch

from .. import _structs
from .._library import check
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


class Kernels:
    """The library's runtime for one device."""

    name = "kernels"

    def __init__(self, kind, index):
        self.runtime = runtime(kind, index)
        self._library = self.runtime.library
        self._handle = self.runtime.handle
        self._place = (kind, index)
        self._cuda = kind == _structs.CUDA

    def _stream(self):
        return _raw_stream(self._place[1]) if self._cuda else None

    def _pack(self, tensor, trailing=0):
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
            *self._place,
        )

    def _saved(self, stats, row):
        """One row of the saved statistics [k, N]."""
        count, length = stats.shape
        if row >= count:
            return _ABSENT
        place = stats.data_ptr() + 4 * length * row
        return _vector(place, _FP32, length, *self._place)

    def row_forward(
        self, logits, ids, row_index, temperatures, options, values, stats
    ):
        """Fills `values` (logp, entropy, lse, squares, argmax; None: not
        wanted) and, unless None, the first two rows of `stats`."""
        pack = self._pack
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
        call = _structs.row_forward(
            pack(logits, 1),
            pack(ids, trailing),
            pack(row_index),
            options.vocab,
            options.temperature,
            options.softcap,
            pack(temperatures),
            outputs,
        )
        status = self._library.logpjit_forward(
            self._handle, call, self._stream()
        )
        if status:
            check(status)

    def row_backward(
        self,
        logits,
        ids,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradient,
        accumulate,
        in_place,
    ):
        """`stats` [k, N]: max, sum, then entropy and squares where their
        upstream is given. `upstream`: of logp, entropy, lse, squares."""
        pack = self._pack
        trailing = options.trailing
        d_logp, d_entropy, d_lse, d_squares = upstream
        entropy_row, squares_row = options.saved_rows
        saved = (
            self._saved(stats, 0),
            self._saved(stats, 1),
            _ABSENT if d_entropy is None else self._saved(stats, entropy_row),
            _ABSENT if d_squares is None else self._saved(stats, squares_row),
        )
        call = _structs.row_backward(
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
        status = self._library.logpjit_backward(
            self._handle, call, self._stream()
        )
        if status:
            check(status)

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
        pack = self._pack
        trailing = options.trailing
        outputs = (
            pack(logp, trailing),
            *[_ABSENT] * 4,
            self._saved(stats, 0),
            self._saved(stats, 1),
        )
        call = _structs.row_forward(
            pack(logits, 1),
            pack(ids, trailing),
            pack(row_index),
            options.vocab,
            options.temperature,
            options.softcap,
            pack(temperatures),
            outputs,
        )
        packed = _structs.row_gradient(
            (pack(upstream, trailing), _ABSENT, _ABSENT, _ABSENT),
            _structs.gradient(pack(gradient, 1), accumulate, in_place),
        )
        check(
            self._library.logpjit_forward_with_grad(
                self._handle, call, packed, self._stream()
            )
        )

    def _kl_inputs(self, student, teacher, row_index, temperatures, options):
        pack = self._pack
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

    def kl_forward(
        self, student, teacher, row_index, temperatures, options, value, stats
    ):
        """`stats`: None or [5, N], whose last four rows are filled: maximum and
        sum of the student, then of the teacher."""
        inputs = self._kl_inputs(
            student, teacher, row_index, temperatures, options
        )
        rows = [_ABSENT] * 4
        if stats is not None:
            rows = [self._saved(stats, row) for row in range(1, 5)]
        call = _structs.kl_forward(inputs, (self._pack(value), *rows))
        check(
            self._library.logpjit_kl_forward(self._handle, call, self._stream())
        )

    def kl_backward(
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
        """`gradients`: of student and teacher, None: not wanted. `stats`: the
        value, then the forward's four."""
        inputs = self._kl_inputs(
            student, teacher, row_index, temperatures, options
        )
        call = _structs.kl_backward(
            inputs,
            [self._saved(stats, row) for row in range(5)],
            self._pack(upstream),
            *[_structs.gradient(self._pack(made, 1)) for made in gradients],
        )
        check(
            self._library.logpjit_kl_backward(self._handle, call, self._stream())
        )
