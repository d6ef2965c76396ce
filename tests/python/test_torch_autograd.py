"""How the operations behave within autograd."""

import pytest
from torch_device import (
    DEVICES,
    close_gradient,
    gradients,
    ids_of,
    logits_of,
    right_entropy,
    right_kl,
    right_logp,
    torch,
)

import logpjit

VOCAB = 300
ROWS = 6


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def logits(device):
    return logits_of((ROWS, VOCAB), device)


@pytest.fixture
def ids(device):
    return ids_of((ROWS,), VOCAB, device)


def saved_by(function):
    """(result, tensors saved for its backward)."""
    saved = []

    def keep(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        return function(), saved


@pytest.mark.parametrize("name", ["logprobs", "both", "all", "kl"])
def test_saved_tensors_are_the_inputs_and_24_bytes_a_row(logits, ids, name):
    x = logits.requires_grad_()
    teacher = logits.detach().clone().requires_grad_()
    calls = {
        "logprobs": lambda: (logpjit.logprobs(x, ids),),
        "both": lambda: logpjit.logprobs_and_entropy(x, ids),
        "all": lambda: logpjit.row_values(
            x, ids, outputs=("logp", "entropy", "lse", "squares")
        )[:4],
        "kl": lambda: (logpjit.kl(x, teacher),),
    }
    outputs, saved = saved_by(calls[name])
    inputs = {x.data_ptr(), ids.data_ptr(), teacher.data_ptr()}
    others = [t for t in saved if t.data_ptr() not in inputs]
    assert sum(t.numel() * t.element_size() for t in others) <= 24 * ROWS
    places = {t.untyped_storage().data_ptr() for t in saved}
    for output in outputs:
        assert output.untyped_storage().data_ptr() not in places


def test_nothing_is_saved_without_a_gradient(logits, ids):
    x = logits.requires_grad_()
    with torch.no_grad():
        _, saved = saved_by(lambda: logpjit.logprobs_and_entropy(x, ids))
    assert saved == []


def test_outputs_may_be_masked_in_place(logits, ids):
    mask = torch.arange(ROWS, device=logits.device) % 2 == 0

    def masked(x):
        logp, entropy = logpjit.logprobs_and_entropy(x, ids)
        kl = logpjit.kl(x, x.detach() * 0.5)
        for value in (logp, entropy, kl):
            value[mask] = 0
        return logp + entropy + kl

    def right(x):
        teacher = x.detach() * 0.5
        found = right_logp(x, ids) + right_entropy(x)
        found = found + right_kl(x, teacher, "forward")
        return found.masked_fill(mask, 0)

    (found,) = gradients(masked, 1.0, logits)
    (wanted,) = gradients(right, 1.0, logits.double())
    close_gradient(found, wanted, 6)
    assert not found[mask].any()


@pytest.mark.parametrize("name", ["logprobs", "kl"])
def test_a_second_derivative_raises(logits, ids, name):
    x = logits.requires_grad_()
    value = (
        logpjit.logprobs(x, ids) if name == "logprobs" else logpjit.kl(x, x * 2)
    )
    (first,) = torch.autograd.grad((value**2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        torch.autograd.grad(first.sum(), x, allow_unused=True)


def test_backward_twice_gives_equal_bits(logits, ids):
    x = logits.requires_grad_()
    loss = logpjit.logprobs_and_entropy(x, ids)[1].sum()
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, second)


def test_a_detached_teacher_gets_no_gradient(logits):
    teacher = (logits * 0.5).requires_grad_()
    x = logits.clone().requires_grad_()
    logpjit.kl(x, teacher.detach()).sum().backward()
    assert teacher.grad is None and x.grad is not None
    y = logits.clone().requires_grad_()
    logpjit.kl(y.detach(), teacher).sum().backward()
    assert y.grad is None and teacher.grad is not None


def test_the_gradient_can_go_over_the_logits(logits, ids):
    (right,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    source = logits.clone().requires_grad_()
    middle = source * 1.0
    logpjit.logprobs(middle, ids, in_place=True).sum().backward()
    assert torch.equal(source.grad, right)
    assert torch.equal(middle.detach(), right)


def test_overwritten_logits_cannot_be_used_again(logits, ids):
    middle = logits.clone().requires_grad_() * 1.0
    other = (middle * middle).sum()
    logpjit.logprobs(middle, ids, in_place=True).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        other.backward()


def test_changed_logits_raise(logits, ids):
    middle = logits.clone().requires_grad_() * 1.0
    value = logpjit.logprobs(middle, ids)
    middle.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.sum().backward()


def test_losses_can_share_one_gradient(logits, ids):
    source = logits.clone().requires_grad_()
    middle = source * 1.0
    shared = middle.detach().requires_grad_()
    total = torch.zeros_like(middle)
    logpjit.logprobs(shared, ids, accumulate=total).sum().backward()
    logpjit.entropy(shared, accumulate=total).sum().backward()
    assert shared.grad is None
    middle.backward(total)
    (right,) = gradients(
        lambda x: right_logp(x, ids) + right_entropy(x), 1.0, logits.double()
    )
    close_gradient(source.grad, right, 4)


def test_autocast_changes_nothing(logits, ids):
    plain = logpjit.logprobs(logits, ids)
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    with torch.autocast(logits.device.type, dtype=torch.bfloat16):
        value = logpjit.logprobs(logits, ids)
        (same,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    assert value.dtype == torch.float32 and torch.equal(value, plain)
    assert torch.equal(gradient, same)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing(logits, ids, use_reentrant):
    from torch.utils.checkpoint import checkpoint

    def function(x):
        return logpjit.logprobs(x * 1.0, ids)

    (right,) = gradients(function, 1.0, logits)
    x = logits.requires_grad_()
    checkpoint(function, x, use_reentrant=use_reentrant).sum().backward()
    assert torch.equal(x.grad, right)


def test_only_what_is_used_is_differentiated(logits, ids):
    x = logits.requires_grad_()
    _, entropy = logpjit.logprobs_and_entropy(x, ids)
    entropy.sum().backward()
    (right,) = gradients(right_entropy, 1.0, logits.double())
    close_gradient(x.grad, right, 4)


def test_a_parameter_and_a_hook(logits, ids):
    parameter = torch.nn.Parameter(logits)
    seen = []
    parameter.register_hook(seen.append)
    logpjit.logprobs(parameter, ids).sum().backward()
    assert len(seen) == 1 and torch.equal(seen[0], parameter.grad)


def test_numeric_derivative(device):
    """Central differences of the operations themselves."""
    logits = logits_of((2, 7), device, scale=1)
    ids = ids_of((2,), 7, device)
    step = 2.0**-6

    def function(x):
        logp, entropy = logpjit.logprobs_and_entropy(x, ids)
        return logp + 0.5 * entropy + logpjit.kl(x, logits * 0.5)

    (found,) = gradients(function, 1.0, logits)
    for place in range(7):
        shift = torch.zeros_like(logits)
        shift[:, place] = step
        slope = (function(logits + shift) - function(logits - shift)) / (2 * step)
        assert (slope - found[:, place]).abs().max() < 1e-3
