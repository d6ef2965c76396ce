"""Plans of row calls."""

import functools

import torch

from .. import _structs
from . import rows
from .plan import Plan, Template, layout, meta, pointer_of


class RowPlan(Plan):
    """Inputs: logits, ids, row numbers, temperatures. Values: those wanted of
    the five."""

    def __init__(self, kernels, inputs, options, arguments):
        logits, ids, row_index, _ = inputs
        shapes = rows.value_shapes(logits, ids, row_index)
        values = [
            meta(shape, dtype) if options.terms & bit else None
            for shape, dtype, bit in zip(
                shapes, rows.VALUE_DTYPES, rows.VALUE_BITS
            )
        ]
        self._wanted = [n for n, value in enumerate(values) if value is not None]
        stats = meta((2, rows.row_count(logits, row_index)))
        made = [values[number] for number in self._wanted]
        super().__init__(kernels, inputs, made, stats)
        self.copied = [
            place for place, n in enumerate(self._wanted) if n in (1, 3)
        ]
        self.has_argmax = 4 in self._wanted
        self._has_ids = ids is not None
        self._indexed = row_index is not None
        self._options = options
        self._in_place = bool(arguments.in_place)
        self.takes_more |= arguments.accumulate is not None
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
        self._gradient = layout(meta(logits.shape, logits.dtype))

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
        pointers = [*map(pointer_of, inputs), place, place + self._steps[0]]
        if self._has_ids and upstream[0] is None:
            del pointers[1]
        forms = tuple([g if g is None else g.stride() for g in upstream])
        for number, copy in zip(self.copied, saved[1:]):
            if forms[number] is not None:
                pointers.append(copy.data_ptr())
        pointers += [g.data_ptr() for g in upstream if g is not None]
        pointers.append(gradient.data_ptr())
        template = self._backward.get(forms)
        if template is None:
            template = self._backward[forms] = self._backward_template(
                inputs, upstream, gradient, accumulate
            )
        if self._launched_backward(template, pointers):
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
            meta((count, self._stats[0][1])),
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
