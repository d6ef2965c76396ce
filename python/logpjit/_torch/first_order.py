"""First derivatives only: a second one raises, however it is asked for."""

import torch


class _Once(torch.autograd.Function):
    """Passes gradients on, and raises when they are differentiated."""

    @staticmethod
    def forward(ctx, count, *tensors):
        return tuple(t if t is None else t.detach() for t in tensors[:count])

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "logpjit: a gradient was differentiated twice; there are first "
            "derivatives only"
        )


def _tensors_in(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors_in(value)


def guard(backward, *arguments):
    """Calls `backward`; with create_graph, what it returns hangs on all that it
    was computed from."""
    if not torch.is_grad_enabled():
        return backward(*arguments)
    with torch.no_grad():
        made = backward(*arguments)
    several = made if isinstance(made, tuple) else (made,)
    once = _Once.apply(len(several), *several, *_tensors_in(arguments))
    return once if isinstance(made, tuple) else once[0]
