"""One call, packed but for its pointers: forward, and backward when first asked
for."""

import struct
from itertools import starmap

import torch

from .. import _structs
from .first_order import guard

pointer_of = torch.Tensor.data_ptr

# What torch's own compiled code allocates and checks with.
_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)


def _allocator(device):
    """A function that gives what makes tensors of (shape, strides, dtype), in a
    fifth of torch.empty's time. On a GPU it serves the current device only."""

    def slow(shape, strides, dtype):
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    quick = getattr(_guards, f"_empty_strided_{device.type}", None)
    if quick is None:
        return lambda: slow
    if device.type == "cpu" or torch.cuda.device_count() == 1:
        return lambda: quick
    current = getattr(torch._C, "_cuda_getDevice", lambda: None)
    index = device.index
    return lambda: quick if current() == index else slow


def form_check(*tensors):
    """A function that tells whether tensors are like these: type, dispatch keys
    (so modes and transforms too), dtype, device, shape, strides and
    requires_grad. None where this torch has no such thing."""
    sizes = [list(tensor.shape) for tensor in tensors]
    strides = [list(tensor.stride()) for tensor in tensors]
    try:
        return _guards.TensorGuards(
            *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
        ).check
    except Exception:  # noqa: BLE001  (another version's)
        return None


def layout(tensor):
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def meta(shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def _unlike(*_):
    return False


class Template:
    """A packed call with holes for pointers."""

    def __init__(self, packed, tensors):
        """`tensors`: byte offsets of the call's tensors."""
        form, parts, begin = "=", [], 0
        for place in tensors:
            if not packed[place + _structs.RANK]:
                continue
            form += f"{place - begin}sQ"
            parts += [packed[begin:place], 0]
            begin = place + 8
        parts.append(packed[begin:])
        self.parts = parts  # every other one is a hole
        self.pack = struct.Struct(f"{form}{len(parts[-1])}s").pack

    def fill(self, pointers):
        parts = self.parts.copy()
        parts[1::2] = pointers
        return self.pack(*parts)


class _Declined(Exception):
    """The library failed: the long way will say why."""


class Plan:
    """What calls of rows and of divergences have in common. `inputs` are those
    of the call that are given, in its order; `takes_more`: than two."""

    copied = ()  # values the backward needs: callers may write into them
    has_argmax = False

    def __init__(self, kernels, inputs, values, stats):
        """`inputs`: None where not given. `values` and `stats`: like those of
        the call, on the meta device."""
        self._kernels = kernels
        self._handle = kernels.handle
        self._given = [tensor is not None for tensor in inputs]
        self.takes_more = any(self._given[2:])
        self._values = [layout(value) for value in values]
        self._stats = layout(stats)
        count, length = stats.shape
        self._steps = [4 * length * number for number in range(1, count)]
        self._stream = kernels.stream_getter()
        self._allocator = _allocator(inputs[0].device)
        self._backward = {}
        self._checks = {}

    def check(self, *inputs):
        """`form_check` of these. Made once, but for another state of torch that
        shows in it (inference mode, autocast) made anew."""
        key = tuple([tensor.requires_grad for tensor in inputs])
        found = self._checks.get(key, _unlike)
        if found is not None and not found(*inputs):
            found = self._checks[key] = form_check(*inputs)
        return found

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

        def forward(*inputs):
            values = tuple(starmap(allocator(), layouts))
            filled = parts.copy()
            filled[1::2] = [*map(pointer_of, inputs), *map(pointer_of, values)]
            if run(handle, pack(*filled), stream()):
                return None
            return values

        if sum(self._given) != 2 or len(layouts) != 1:
            return forward
        # The same, of two inputs and one value: log-probabilities, divergences.
        head, after_a, after_b, tail = parts[::2]
        ((shape, strides, dtype),) = layouts

        def forward_of_two(a, b):
            value = allocator()(shape, strides, dtype)
            call = pack(
                head,
                a.data_ptr(),
                after_a,
                b.data_ptr(),
                after_b,
                value.data_ptr(),
                tail,
            )
            return None if run(handle, call, stream()) else (value,)

        return forward_of_two

    def forward_saving(self, inputs):
        """(values, what the backward needs), or None where the library
        fails."""
        empty = self._allocator()
        values = tuple(starmap(empty, self._values))
        stats = empty(*self._stats)
        place = stats.data_ptr()
        pointers = [*map(pointer_of, inputs), *map(pointer_of, values), place]
        for step in self._steps:
            pointers.append(place + step)
        call = self._saving.fill(pointers)
        if self._run(self._handle, call, self._stream()):
            return None
        if not self.copied:
            return values, (stats,)
        return values, (stats, *[values[n].clone() for n in self.copied])

    def differentiable(self, accumulate, *inputs):
        """The values as autograd knows them, or None where the library
        fails."""
        try:
            return _apply(self, accumulate, *inputs)
        except _Declined:
            return None

    def _launched_backward(self, template, pointers):
        """Whether the library did."""
        call = template.fill(pointers)
        return not self._run_backward(self._handle, call, self._stream())


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
