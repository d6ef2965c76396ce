"""Row calls on tensors of a form met before: all but the pointers is packed
already, so that a call costs a few microseconds of Python.

A plan is made after a call of this form has passed every check, and answers for
tensors whose dtypes, shapes, strides and devices are the same.
"""

import struct

import torch

from .. import _structs
from . import backends, rows
from .kernels import DTYPES, Kernels

_MOST = 1000  # forms; variable sequence lengths make many
_pointer = struct.Struct("=Q").pack
_FP32 = torch.float32
_known = {}

known = _known.get


def key_of(logits, ids, *options):
    """What must be the same for a plan to serve."""
    if ids is None:
        return (
            logits.dtype,
            logits.shape,
            logits.stride(),
            logits.device,
            options,
        )
    return (
        logits.dtype,
        logits.shape,
        logits.stride(),
        logits.device,
        ids.dtype,
        ids.shape,
        ids.stride(),
        ids.device,
        options,
    )


def remember(key, logits, ids, options):
    """`options` with a plan, where one is possible."""
    backend = backends.backend(logits.device)
    if not isinstance(backend, Kernels) or logits.numel() == 0:
        return options
    if logits.dim() > 3 or options.terms & _structs.ARGMAX:
        return options
    if len(_known) >= _MOST:
        _known.clear()
    made = options._replace(plan=RowPlan(backend, logits, ids, options))
    _known[key] = made
    return made


backends.on_forget(_known.clear)


class _Template:
    """A packed call with holes for pointers."""

    def __init__(self, packed, places):
        """`places`: byte offsets of the holes, ascending."""
        self.parts = []
        begin = 0
        for place in places:
            self.parts += [packed[begin:place], b""]
            begin = place + 8
        self.parts.append(packed[begin:])

    def fill(self, pointers):
        parts = self.parts.copy()
        parts[1::2] = [_pointer(pointer) for pointer in pointers]
        return b"".join(parts)


class RowPlan:
    """Values are logp, entropy, lse and squares, as the terms say."""

    def __init__(self, kernels, logits, ids, options):
        self._kernels = kernels
        self._options = options
        self._device = logits.device
        self._dtype = logits.dtype
        self._shape = logits.shape
        leading = logits.shape[:-1]
        self._rows = logits.numel() // logits.shape[-1]
        shapes = (None if ids is None else ids.shape, *[leading] * 3)
        self._wanted = [
            (number, shape)
            for number, shape in enumerate(shapes)
            if options.terms & (1 << number)
        ]
        self._saved = 2 + sum(number in (1, 3) for number, _ in self._wanted)
        self._forward = {
            save: self._forward_template(logits, ids, save)
            for save in (False, True)
        }
        self._backward = {}

    def _head(self, logits, ids):
        pack = self._kernels.pack
        options = self._options
        return (
            pack(logits, 1),
            pack(ids, options.trailing),
            _structs.ABSENT,
            options.vocab,
            options.temperature,
            options.softcap,
            _structs.ABSENT,
        )

    def _vector(self, shape, trailing=0):
        """An fp32 tensor of this shape, contiguous, its pointer left out."""
        strides = torch.empty(shape, device="meta").stride()
        return _structs.tensor(
            0, _structs.FP32, shape, strides, *self._kernels.place
        )

    def _forward_template(self, logits, ids, save):
        outputs = [_structs.ABSENT] * 7
        for number, shape in self._wanted:
            outputs[number] = self._vector(shape)
        if save:
            outputs[5] = outputs[6] = self._vector((self._rows,))
        packed = _structs.row_forward(*self._head(logits, ids), outputs)
        given = [number for number, one in enumerate(outputs) if any(one)]
        places = [_structs.FORWARD_LOGITS]
        if ids is not None:
            places.append(_structs.FORWARD_IDS)
        places += [_structs.forward_output(number) for number in given]
        return _Template(packed, places)

    def forward(self, logits, ids, save):
        """(the five results, saved statistics), or None where the library
        fails: the long way will say why."""
        device = self._device
        values = [None] * 5
        pointers = [logits.data_ptr()]
        if ids is not None:
            pointers.append(ids.data_ptr())
        for number, shape in self._wanted:
            made = values[number] = torch.empty(
                shape, dtype=_FP32, device=device
            )
            pointers.append(made.data_ptr())
        stats = None
        if save:
            count = self._rows
            stats = torch.empty(
                (self._saved, count), dtype=_FP32, device=device
            )
            place = stats.data_ptr()
            pointers += (place, place + 4 * count)
        call = self._forward[save].fill(pointers)
        kernels = self._kernels
        if kernels.library.logpjit_forward(
            kernels.handle, call, kernels.stream()
        ):
            return None
        if self._saved > 2 and save:
            rows.keep_values(values, stats, self._options)
        return tuple(values), stats

    def _backward_template(self, logits, ids, given):
        options = self._options
        leading = logits.shape[:-1]
        entropy_row, squares_row = options.saved_rows
        used = (
            0,
            1,
            entropy_row if given[1] else None,
            squares_row if given[3] else None,
        )
        one = self._vector((self._rows,))
        absent = _structs.ABSENT
        saved = [absent if row is None else one for row in used]
        shapes = (None if ids is None else ids.shape, *[leading] * 3)
        upstream = [
            self._vector(shape) if here else absent
            for shape, here in zip(shapes, given)
        ]
        head = self._head(logits, ids if given[0] else None)
        target = _structs.tensor(
            0,
            DTYPES[self._dtype],
            logits.shape,
            torch.empty(logits.shape, device="meta").stride(),
            *self._kernels.place,
        )
        packed = _structs.row_backward(
            *head, saved, upstream, _structs.gradient(target)
        )
        places = [_structs.BACKWARD_LOGITS]
        places += [_structs.BACKWARD_IDS] if given[0] else []
        places += [
            _structs.backward_saved(number)
            for number, row in enumerate(used)
            if row is not None
        ]
        places += [
            _structs.backward_upstream(number)
            for number, here in enumerate(given)
            if here
        ]
        places.append(_structs.BACKWARD_GRADIENT)
        return _Template(packed, places), [r for r in used if r is not None]

    def backward(self, logits, ids, stats, upstream):
        """The gradient, or None where the long way has to be gone."""
        given = tuple(g is not None for g in upstream)
        found = self._backward.get(given)
        if found is None:
            found = self._backward_template(logits, ids, given)
            self._backward[given] = found
        template, used = found
        pointers = [logits.data_ptr()]
        if given[0]:
            pointers.append(ids.data_ptr())
        place, step = stats.data_ptr(), 4 * self._rows
        pointers += [place + step * row for row in used]
        for g in upstream:
            if g is None:
                continue
            if not g.is_contiguous():
                return None
            pointers.append(g.data_ptr())
        gradient = torch.empty(
            self._shape, dtype=self._dtype, device=self._device
        )
        pointers.append(gradient.data_ptr())
        kernels = self._kernels
        if kernels.library.logpjit_backward(
            kernels.handle, template.fill(pointers), kernels.stream()
        ):
            return None
        return gradient
