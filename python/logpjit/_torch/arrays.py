"""Torch tensors as the checks see them."""

import torch

from .. import _checks


class _Tensors(_checks.Arrays):
    kind = "a torch tensor"

    def holds(self, value):
        return isinstance(value, torch.Tensor)

    def dtype(self, array):
        return str(array.dtype).rpartition(".")[2]

    def place(self, array):
        return array.device

    def odd_layout(self, array):
        if array.layout is torch.strided and not array.is_nested:
            return None
        return "nested" if array.is_nested else str(array.layout)

    def strides(self, array):
        return array.stride()

    def needs_gradient(self, array):
        return array.requires_grad

    def flat(self, array):
        try:
            return array.view(-1, *array.shape[-2:])
        except RuntimeError:
            return None

    def contiguous(self, array):
        return array.contiguous()

    def spread(self, scalar, shape):
        return scalar.expand(shape)

    def replaced(self, ids, old, new):
        return ids.masked_fill(ids == old, new)


ARRAYS = _Tensors()
