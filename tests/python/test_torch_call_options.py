"""`validate` and `copy_strided`: what they raise, what they copy, what they leave
as it was."""

import pytest
from torch_device import DEVICES, gradients, ids_of, logits_of, torch

import logpjit
from logpjit._torch import backends
from logpjit._torch.eager import Eager

VOCAB = 300


@pytest.fixture(params=[*DEVICES, "torch's own"])
def device(request):
    """A device, or the CPU with torch computing."""
    backends.forget()
    if request.param in DEVICES:
        yield request.param
    else:
        backends._chosen[torch.zeros(0).device] = Eager()
        yield "cpu"
    backends.forget()


@pytest.fixture
def logits(device):
    return logits_of((4, VOCAB), device)


@pytest.fixture
def ids(device):
    return ids_of((4,), VOCAB, device)


def same(found, right):
    """To the bit, where the library computes."""
    own = any(isinstance(one, Eager) for one in backends._chosen.values())
    slack = {"atol": 5e-6, "rtol": 5e-6} if own else {"atol": 0, "rtol": 0}
    torch.testing.assert_close(found, right, **slack)


def strided(logits):
    """The same values, the vocabulary not contiguous."""
    return logits.t().contiguous().t()


@pytest.mark.parametrize("bad", [-1, -100, VOCAB, 2**40])
def test_validate_names_an_id_that_does_not_exist(logits, ids, bad):
    right = logpjit.logprobs(logits, ids, validate=True)
    assert torch.equal(right, logpjit.logprobs(logits, ids))
    ids[2] = bad
    with pytest.raises(ValueError, match=f"ids.*{bad}"):
        logpjit.logprobs(logits, ids, validate=True, ignore_index=5)
    with pytest.raises(ValueError, match=f"ids.*{bad}"):
        logpjit.logprobs_with_grad(
            logits, ids, right, validate=True, ignore_index=-7
        )
    # The one to ignore is no mistake, wherever it is.
    for ignored in (bad, 5):
        ids[2] = ignored
        found = logpjit.logprobs(
            logits, ids, validate=True, ignore_index=ignored
        )
        assert found[2] == 0 and torch.equal(found[:2], right[:2])


def test_validate_of_columns_that_do_not_count(logits, ids):
    ids[1] = 290
    logpjit.logprobs(logits, ids, validate=True)
    with pytest.raises(ValueError, match="ids.*290"):
        logpjit.logprobs(logits, ids, validate=True, vocab=290)


@pytest.mark.parametrize("bad", [-1, 4])
def test_validate_names_a_row_that_does_not_exist(logits, ids, bad):
    index = torch.tensor([3, bad], device=logits.device)
    for call in (
        lambda: logpjit.entropy(logits, row_index=index, validate=True),
        lambda: logpjit.kl(logits, logits, row_index=index, validate=True),
    ):
        with pytest.raises(ValueError, match=f"row_index.*{bad}"):
            call()


def test_validate_keeps_gradients(logits, ids):
    (right,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    (found,) = gradients(
        lambda x: logpjit.logprobs(x, ids, validate=True), 1.0, logits
    )
    assert torch.equal(found, right)


def test_strided_logits_are_copied_when_asked(logits, ids):
    def both(x, **options):
        logp, entropy = logpjit.logprobs_and_entropy(x, ids, **options)
        return torch.stack((logp, entropy))

    g = logits_of((2, 4), logits.device, seed=3, scale=1)
    x = strided(logits)
    with pytest.raises(ValueError, match="logits: stride 4.*copy_strided"):
        both(x)
    same(both(x, copy_strided=True), both(logits))
    leaf = x.detach().requires_grad_()
    value = both(leaf, copy_strided=True)
    (found,) = torch.autograd.grad((value * g).sum(), leaf)
    (right,) = gradients(both, g, logits)
    same(found, right)
    # Rows of [B, S, V] whose middle one is the vocabulary's.
    x = logits.view(2, 2, VOCAB).transpose(1, 2).contiguous().transpose(1, 2)
    found = logpjit.logprobs(x, ids.view(2, 2), copy_strided=True)
    same(found.view(-1), both(logits)[0])


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_strided_sides_of_a_divergence(logits, direction):
    other = logits_of((4, VOCAB), logits.device, seed=1)

    def kl(x, y, **options):
        return logpjit.kl(x, y, direction=direction, **options)

    right = kl(logits, other), *gradients(kl, 1.0, logits, other)
    with pytest.raises(ValueError, match="teacher: stride"):
        kl(logits, strided(other))
    sides = [strided(x).detach().requires_grad_() for x in (logits, other)]
    value = kl(*sides, copy_strided=True)
    found = value.detach(), *torch.autograd.grad(value.sum(), sides)
    for one, wanted in zip(found, right):
        same(one, wanted)


def test_known_gradients_of_strided_logits(logits, ids):
    g = logits_of((4,), logits.device, seed=3, scale=1)
    right = logpjit.logprobs_with_grad(logits, ids, g)
    found = logpjit.logprobs_with_grad(
        strided(logits), ids, g, copy_strided=True
    )
    for one, wanted in zip(found, right):
        same(one, wanted)


def test_strided_logits_cannot_be_overwritten(logits, ids):
    x = strided(logits).requires_grad_()
    with pytest.raises(ValueError, match="logits: stride"):
        logpjit.logprobs(x, ids, copy_strided=True, in_place=True)


def test_traced_code(logits, ids):
    def function(x):
        return logpjit.logprobs(x, ids, copy_strided=True)

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    same(compiled(strided(logits)), function(logits))
    with pytest.raises(Exception, match="validate"):
        torch.compile(
            lambda x: logpjit.logprobs(x, ids, validate=True), backend="eager"
        )(logits)
