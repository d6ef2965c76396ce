"""One call, packed but for its pointers: forward, and backward when first asked
for."""

import functools
import struct
from itertools import starmap

import torch

from .. import _structs
from . import divergence, rows
from .first_order import guard

_FP32 = torch.float32
_pointer = torch.Tensor.data_ptr


def _allocator(device):
    """A function that gives what makes tensors of (shape, strides, dtype): what
    torch's generated code uses, a fifth of torch.empty's time. On a GPU it
    serves the current device only."""

    def slow(shape, strides, dtype):
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    quick = getattr(guards, f"_empty_strided_{device.type}", None)
    current = getattr(torch._C, "_cuda_getDevice", None)
    if quick is None or (device.type == "cuda" and current is None):
        return lambda: slow
    if device.type == "cpu":
        return lambda: quick
    index = device.index
    return lambda: quick if current() == index else slow


class Template:
    """A packed call with holes for pointers."""

    def __init__(self, packed, tensors):
        """`tensors`: byte offsets of the call's tensors."""
        layout, parts, begin = "=", [], 0
        for place in tensors:
            if not packed[place + _structs.RANK]:
                continue
            layout += f"{place - begin}sQ"
            parts += [packed[begin:place], 0]
            begin = place + 8
        parts.append(packed[begin:])
        self.parts = parts  # every other one is a hole
        self.pack = struct.Struct(f"{layout}{len(parts[-1])}s").pack

    def fill(self, pointers):
        parts = self.parts.copy()
        parts[1::2] = pointers
        return self.pack(*parts)


class _Declined(Exception):
    """The library failed: the long way will say why."""


class Plan:
    """What calls of rows and of divergences have in common. `inputs` are those
    of the call that are given, in its order."""

    copied = ()  # values the backward needs: callers may write into them
    has_argmax = False

    def __init__(self, kernels, inputs, values, stats):
        """`inputs`: None where not given. `values` and `stats`: like those of
        the call, on the meta device."""
        self._kernels = kernels
        self._handle = kernels.handle
        self._given = [tensor is not None for tensor in inputs]
        self._values = [_layout(value) for value in values]
        self._stats = _layout(stats)
        count, length = stats.shape
        self._steps = [4 * length * number for number in range(1, count)]
        self._stream = kernels.stream_getter()
        self._allocator = _allocator(inputs[0].device)
        self._backward = {}

    def _all_inputs(self, inputs):
        """None where not given."""
        given = iter(inputs)
        return [next(given) if here else None for here in self._given]

    def _forward_without_saving(self, template):
        """A function of the inputs: the values, or None where the library
        fails. What it needs is at hand in variables of its own: this is the
        quickest path there is, and it shows."""
        allocator, stream = self._allocator, self._stream
        layouts, run, handle = self._values, self._run, self._handle
        parts, pack = template.parts, template.pack

        def forward(inputs):
            values = tuple(starmap(allocator(), layouts))
            filled = parts.copy()
            filled[1::2] = [*map(_pointer, inputs), *map(_pointer, values)]
            if run(handle, pack(*filled), stream()):
                return None
            return values

        return forward

    def forward_saving(self, inputs):
        """(values, what the backward needs), or None where the library
        fails."""
        empty = self._allocator()
        values = tuple(starmap(empty, self._values))
        stats = empty(*self._stats)
        place = stats.data_ptr()
        pointers = [*map(_pointer, inputs), *map(_pointer, values), place]
        for step in self._steps:
            pointers.append(place + step)
        call = self._saving.fill(pointers)
        if self._run(self._handle, call, self._stream()):
            return None
        if not self.copied:
            return values, (stats,)
        return values, (stats, *[values[n].clone() for n in self.copied])

    def differentiable(self, inputs, accumulate):
        """The values as autograd knows them, or None where the library
        fails."""
        try:
            return _apply(self, accumulate, *inputs)
        except _Declined:
            return None

    def _launch_backward(self, key, make, pointers):
        """Whether the library did; `make` packs a call of this form."""
        template = self._backward.get(key)
        if template is None:
            template = self._backward[key] = make()
        call = template.fill(pointers)
        return not self._run_backward(self._handle, call, self._stream())


def _layout(tensor):
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def _meta(shape, dtype=_FP32):
    return torch.empty(shape, dtype=dtype, device="meta")


class RowPlan(Plan):
    """Inputs: logits, ids, row numbers, temperatures. Values: those wanted of
    the five."""

    def __init__(self, kernels, inputs, options, in_place):
        logits, ids, row_index, _ = inputs
        shapes = rows.value_shapes(logits, ids, row_index)
        values = [
            _meta(shape, dtype) if options.terms & bit else None
            for shape, dtype, bit in zip(
                shapes, rows.VALUE_DTYPES, rows.VALUE_BITS
            )
        ]
        self._wanted = [n for n, value in enumerate(values) if value is not None]
        stats = _meta((2, rows.row_count(logits, row_index)))
        made = [values[number] for number in self._wanted]
        super().__init__(kernels, inputs, made, stats)
        self.copied = [
            place for place, n in enumerate(self._wanted) if n in (1, 3)
        ]
        self.has_argmax = 4 in self._wanted
        self._has_ids = ids is not None
        self._indexed = row_index is not None
        self._options = options
        self._in_place = bool(in_place)
        self._run = kernels.library.logpjit_forward
        self._run_backward = kernels.library.logpjit_backward
        call = functools.partial(
            kernels.row_forward_call, *inputs, options, values
        )
        tensors = _structs.FORWARD_TENSORS
        self.forward = self._forward_without_saving(
            Template(call(None), tensors)
        )
        self._saving = Template(call(stats), tensors)
        self._gradient = _layout(_meta(logits.shape, logits.dtype))

    def spread(self, values):
        """As the five results."""
        spread = [None] * 5
        for number, value in zip(self._wanted, values):
            spread[number] = value
        return spread

    def _target(self, inputs, accumulate):
        if accumulate is not None:
            return accumulate
        if self._in_place:
            return inputs[0].detach()
        if self._indexed:
            return rows.new_gradient(inputs[0], True)
        return self._allocator()(*self._gradient)

    def gradients(self, inputs, saved, upstream, _needed, accumulate):
        gradient = self._target(inputs, accumulate)
        place = saved[0].data_ptr()
        # Ids and what was copied go with the upstream they are for.
        pointers = [*map(_pointer, inputs), place, place + self._steps[0]]
        if self._has_ids and upstream[0] is None:
            del pointers[1]
        forms = tuple([g if g is None else g.stride() for g in upstream])
        for number, copy in zip(self.copied, saved[1:]):
            if forms[number] is not None:
                pointers.append(copy.data_ptr())
        pointers += [g.data_ptr() for g in upstream if g is not None]
        pointers.append(gradient.data_ptr())
        arguments = inputs, upstream, gradient, accumulate
        make = functools.partial(self._backward_template, *arguments)
        if self._launch_backward(forms, make, pointers):
            return (gradient,)
        return (self._long_way(inputs, saved, upstream, accumulate),)

    def _long_way(self, inputs, saved, upstream, accumulate):
        stats, *copies = saved
        return rows.backward(
            *self._all_inputs(inputs),
            torch.cat([stats, *[copy.view(1, -1) for copy in copies]]),
            self.spread(upstream)[:4],
            self._options,
            accumulate,
            self._in_place,
        )

    def _backward_template(self, inputs, upstream, gradient, accumulate):
        count = rows.saved_count(self._options.terms)
        packed = self._kernels.row_backward_call(
            *self._all_inputs(inputs),
            self._options,
            _meta((count, self._stats[0][1])),
            self.spread(upstream)[:4],
            gradient,
            accumulate is not None,
            self._in_place,
        )
        return Template(packed, _structs.BACKWARD_TENSORS)

    def settle(self, inputs, gradients, accumulate):
        """What autograd is given."""
        if accumulate is not None:
            return (None,)
        if self._in_place:
            # Whoever else saved these logits must not read the gradient.
            torch.autograd.graph.increment_version(inputs[0])
        return gradients


class KlPlan(Plan):
    """Inputs: student, teacher, row numbers, temperatures of both."""

    copied = (0,)

    def __init__(self, kernels, inputs, options):
        student, _, row_index, *temperatures = inputs
        count = rows.row_count(student, row_index)
        leading = student.shape[:-1] if row_index is None else (count,)
        value = _meta(leading)
        super().__init__(kernels, inputs, [value], _meta((4, count)))
        self._options = options
        self._run = kernels.library.logpjit_kl_forward
        self._run_backward = kernels.library.logpjit_kl_backward
        call = functools.partial(
            kernels.kl_forward_call, *inputs[:3], temperatures, options, value
        )
        tensors = _structs.KL_FORWARD_TENSORS
        self.forward = self._forward_without_saving(
            Template(call(None), tensors)
        )
        self._saving = Template(call(_meta((5, count))), tensors)

    def gradients(self, inputs, saved, upstream, needed, _accumulate):
        stats, value = saved
        (g,) = upstream
        index = True if self._given[2] else None
        made = tuple(
            rows.new_gradient(side, index) if wanted else None
            for side, wanted in zip(inputs, needed[:2])
        )
        place = stats.data_ptr()
        pointers = [*map(_pointer, inputs), value.data_ptr(), place]
        pointers += [place + step for step in self._steps]
        pointers.append(g.data_ptr())
        pointers += [side.data_ptr() for side in made if side is not None]
        make = functools.partial(self._backward_template, inputs, g, made)
        key = g.stride(), needed[:2]
        if self._launch_backward(key, make, pointers):
            return made
        inputs = self._all_inputs(inputs)
        matrix = torch.cat([value.view(1, -1), stats])
        return divergence.backward(
            *inputs[:3], inputs[3:], matrix, g, self._options, needed[:2]
        )

    def _backward_template(self, inputs, upstream, gradients):
        inputs = self._all_inputs(inputs)
        packed = self._kernels.kl_backward_call(
            *inputs[:3],
            inputs[3:],
            self._options,
            _meta((5, self._stats[0][1])),
            upstream,
            gradients,
        )
        return Template(packed, _structs.KL_BACKWARD_TENSORS)

    def settle(self, _inputs, gradients, _accumulate):
        return gradients


class _Planned(torch.autograd.Function):
    """Saves the inputs themselves and 8 to 20 bytes per row."""

    @staticmethod
    def forward(ctx, plan, accumulate, *inputs):
        made = plan.forward_saving(inputs)
        if made is None:
            raise _Declined
        values, saved = made
        ctx.save_for_backward(*inputs, *saved)
        ctx.call = plan, accumulate, len(inputs)
        ctx.set_materialize_grads(False)
        if plan.has_argmax:
            ctx.mark_non_differentiable(values[-1])
        return values

    @staticmethod
    def backward(ctx, *upstream):
        plan, accumulate, count = ctx.call
        gradients = ()
        if any([g is not None for g in upstream]):
            tensors = ctx.saved_tensors
            inputs, saved = tensors[:count], tensors[count:]
            needed = ctx.needs_input_grad[2:]
            arguments = inputs, saved, upstream, needed, accumulate
            gradients = guard(plan.gradients, *arguments)
            gradients = plan.settle(inputs, gradients, accumulate)
        return (None, None, *gradients, *[None] * (count - len(gradients)))


# Function.apply without its look at transforms: there are none here.
_apply = super(torch.autograd.Function, _Planned).apply
