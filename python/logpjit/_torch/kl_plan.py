"""Plans of divergences."""

import functools

import torch

from .. import _structs
from . import divergence, rows
from .plan import Plan, Template, meta, pointer_of


class KlPlan(Plan):
    """Inputs: student, teacher, row numbers, temperatures of both."""

    copied = (0,)

    def __init__(self, kernels, inputs, options):
        student, _, row_index, *temperatures = inputs
        count = rows.row_count(student, row_index)
        leading = student.shape[:-1] if row_index is None else (count,)
        value = meta(leading)
        super().__init__(kernels, inputs, [value], meta((4, count)))
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
        self._saving = Template(call(meta((5, count))), tensors)

    def gradients(self, inputs, saved, upstream, needed, _accumulate):
        stats, value = saved
        (g,) = upstream
        index = True if self._given[2] else None
        made = tuple(
            rows.new_gradient(side, index) if wanted else None
            for side, wanted in zip(inputs, needed[:2])
        )
        place = stats.data_ptr()
        pointers = [*map(pointer_of, inputs), value.data_ptr(), place]
        pointers += [place + step for step in self._steps]
        pointers.append(g.data_ptr())
        pointers += [side.data_ptr() for side in made if side is not None]
        key = g.stride(), needed[:2]
        template = self._backward.get(key)
        if template is None:
            template = self._backward[key] = self._backward_template(
                inputs, g, made
            )
        if self._launched_backward(template, pointers):
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
            meta((5, self._stats[0][1])),
            upstream,
            gradients,
        )
        return Template(packed, _structs.KL_BACKWARD_TENSORS)

    def settle(self, _inputs, gradients, _accumulate):
        return gradients
