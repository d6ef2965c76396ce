"""What the torch tests share: the device, float64 answers through autograd."""

import numpy
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def logits_of(shape, device, dtype=torch.float32, seed=0, scale=4.0):
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=generator) * scale
    return made.to(dtype).to(device)


def ids_of(shape, vocab, device, seed=0):
    generator = torch.Generator().manual_seed(seed + 100)
    return torch.randint(0, vocab, shape, generator=generator).to(device)


def right_logp(logits, ids, temperature=1.0):
    """Float64, differentiable; ids outside the vocabulary give 0."""
    log_p = torch.log_softmax(logits.double() / temperature, -1)
    many = ids if ids.dim() == logits.dim() else ids[..., None]
    live = (many >= 0) & (many < logits.shape[-1])
    found = log_p.gather(-1, torch.where(live, many, 0).long())
    found = torch.where(live, found, 0.0)
    return found if ids.dim() == logits.dim() else found[..., 0]


def right_entropy(logits, temperature=1.0):
    log_p = torch.log_softmax(logits.double() / temperature, -1)
    return -(log_p.exp() * log_p).sum(-1)


def right_kl(student, teacher, direction):
    a = torch.log_softmax(student.double(), -1)
    b = torch.log_softmax(teacher.double(), -1)
    if direction == "forward":
        a, b = b, a
    return (a.exp() * (a - b)).sum(-1)


def leaf(logits):
    return logits.detach().clone().requires_grad_()


def gradients(function, upstream, *inputs):
    """Gradients of sum(upstream * function(inputs)), for each input."""
    inputs = [leaf(tensor) for tensor in inputs]
    loss = (function(*inputs) * upstream).sum()
    return torch.autograd.grad(loss, inputs)


def close(found, right, atol=2e-6, rtol=1e-6):
    assert found.shape == right.shape
    numpy.testing.assert_allclose(
        found.detach().double().cpu(), right.detach().cpu(), atol=atol, rtol=rtol
    )


def close_gradient(found, right, scale=1.0):
    """To one rounding of the gradient's dtype."""
    assert found.shape == right.shape
    step = TOLERANCE[found.dtype]
    close(found, right, atol=3e-6 * scale, rtol=step)
