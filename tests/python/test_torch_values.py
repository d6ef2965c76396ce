"""Values and gradients on torch tensors, against float64 autograd."""

import pytest
from torch_device import (
    DEVICES,
    close,
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
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (2, 5)])
def test_logprobs(device, dtype, shape):
    logits = logits_of((*shape, VOCAB), device, dtype)
    ids = ids_of(shape, VOCAB, device)
    ids.view(-1)[1] = -100
    found = logpjit.logprobs(logits, ids)
    assert found.dtype == torch.float32 and not found.requires_grad
    close(found, right_logp(logits, ids))
    g = logits_of(shape, device, seed=3, scale=1)
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), g, logits)
    (right,) = gradients(lambda x: right_logp(x, ids), g, logits.double())
    assert gradient.dtype == dtype
    close_gradient(gradient, right)
    assert not gradient.view(-1, VOCAB)[1].any()


def test_with_and_without_gradient_are_equal(device):
    logits = logits_of((6, VOCAB), device)
    ids = ids_of((6,), VOCAB, device)
    plain = logpjit.logprobs(logits, ids)
    assert torch.equal(plain, logpjit.logprobs(logits.requires_grad_(), ids))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logprobs_and_entropy(device, dtype):
    logits = logits_of((2, 5, VOCAB), device, dtype)
    ids = ids_of((2, 5), VOCAB, device)
    g = logits_of((2, 2, 5), device, seed=3, scale=1)
    logp, entropy = logpjit.logprobs_and_entropy(logits, ids, temperature=1.3)
    close(logp, right_logp(logits, ids, 1.3))
    close(entropy, right_entropy(logits, 1.3))
    (gradient,) = gradients(
        lambda x: torch.stack(
            logpjit.logprobs_and_entropy(x, ids, temperature=1.3)
        ),
        g,
        logits,
    )
    (right,) = gradients(
        lambda x: torch.stack((right_logp(x, ids, 1.3), right_entropy(x, 1.3))),
        g,
        logits.double(),
    )
    close_gradient(gradient, right, 4)


def test_all_values(device):
    logits = logits_of((6, VOCAB), device)
    ids = ids_of((6, 3), VOCAB, device)
    names = ("logp", "entropy", "lse", "squares", "argmax")

    def all_of(x):
        found = logpjit.row_values(x, ids, outputs=names)
        return torch.cat(
            [found.logp, torch.stack(found[1:4], 1)], 1
        ), found.argmax

    def right_of(x):
        p = torch.softmax(x, -1)
        others = right_entropy(x), torch.logsumexp(x, -1), (p * p).sum(-1)
        return torch.cat([right_logp(x, ids), torch.stack(others, 1)], 1)

    values, argmax = all_of(logits)
    close(values, right_of(logits.double()))
    assert torch.equal(argmax, logits.argmax(-1)) and not argmax.requires_grad
    g = logits_of((6, 6), device, seed=3, scale=1)
    (gradient,) = gradients(lambda x: all_of(x)[0], g, logits)
    (right,) = gradients(right_of, g, logits.double())
    close_gradient(gradient, right, 6)


def test_duplicate_ids_accumulate(device):
    logits = logits_of((3, VOCAB), device)
    ids = torch.tensor([[5, 5, -100], [1, 2, 5], [-1, -1, -1]], device=device)
    g = logits_of((3, 3), device, seed=3, scale=1)
    close(logpjit.logprobs(logits, ids), right_logp(logits, ids))
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), g, logits)
    (right,) = gradients(lambda x: right_logp(x, ids), g, logits.double())
    close_gradient(gradient, right, 3)
    assert not gradient[2].any()


def test_views_are_read_in_place_and_nothing_beside_them(device):
    store = logits_of((2, 6, VOCAB), device)
    store[:, -1] = float("nan")
    ids = ids_of((2, 5), VOCAB, device)
    view = store[:, :-1]
    close(logpjit.logprobs(view, ids), right_logp(view, ids))
    x = store.clone().requires_grad_()
    logpjit.logprobs(x[:, :-1], ids).sum().backward()
    (right,) = gradients(lambda z: right_logp(z, ids), 1, view.double())
    close_gradient(x.grad[:, :-1], right)
    assert not x.grad[:, -1].any()


def test_four_dimensions(device):
    logits = logits_of((2, 2, 3, VOCAB), device)
    ids = ids_of((2, 2, 3), VOCAB, device)
    g = logits_of((2, 2, 3), device, seed=3).transpose(0, 1)
    close(logpjit.logprobs(logits, ids), right_logp(logits, ids))
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), g, logits)
    (right,) = gradients(lambda x: right_logp(x, ids), g, logits.double())
    close_gradient(gradient, right, 4)


def test_temperature_per_row_and_padding(device):
    logits = logits_of((4, VOCAB), device)
    logits[:, 290:] = float("nan")
    ids = ids_of((4,), 290, device)
    t = torch.tensor([0.5, 1, 2, 3], device=device)

    def ours(x):
        return logpjit.logprobs(x, ids, temperature=t, vocab=290)

    def right(x):
        return right_logp(x[:, :290], ids, t[:, None].double())

    close(ours(logits), right(logits))
    (gradient,) = gradients(ours, 1.0, logits)
    (wanted,) = gradients(right, 1.0, logits.double())
    close_gradient(gradient, wanted, 2)
    assert not gradient[:, 290:].any()
    zero_dim = torch.tensor(2.0, device=device)
    same = logpjit.logprobs(logits, ids, temperature=zero_dim, vocab=290)
    close(same, right_logp(logits[:, :290], ids, 2.0))


def test_softcap(device):
    logits = logits_of((4, VOCAB), device)
    ids = ids_of((4,), VOCAB, device)

    def right(x):
        return right_logp(5 * torch.tanh(x.double() / 5), ids)

    close(logpjit.logprobs(logits, ids, softcap=5.0), right(logits))
    (gradient,) = gradients(
        lambda x: logpjit.logprobs(x, ids, softcap=5.0), 1.0, logits
    )
    (wanted,) = gradients(right, 1.0, logits.double())
    close_gradient(gradient, wanted)


def test_row_index(device):
    logits = logits_of((2, 3, VOCAB), device)
    rows = torch.tensor([4, 0], device=device)
    ids = torch.tensor([7, 8], device=device)

    def ours(x):
        return logpjit.logprobs(x, ids, row_index=rows)

    def right(x):
        return right_logp(x.view(-1, VOCAB)[rows], ids)

    close(ours(logits), right(logits))
    (gradient,) = gradients(ours, 1.0, logits)
    (wanted,) = gradients(right, 1.0, logits.double())
    close_gradient(gradient, wanted)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("dtypes", [DTYPES[:1] * 2, DTYPES[1:]])
def test_kl(device, direction, dtypes):
    student = logits_of((2, 5, VOCAB), device, dtypes[0])
    teacher = logits_of((2, 5, VOCAB), device, dtypes[1], seed=1)
    g = logits_of((2, 5), device, seed=3, scale=1)
    found = logpjit.kl(student, teacher, direction=direction)
    close(found, right_kl(student, teacher, direction))
    both = gradients(
        lambda a, b: logpjit.kl(a, b, direction=direction), g, student, teacher
    )
    right = gradients(
        lambda a, b: right_kl(a, b, direction),
        g,
        student.double(),
        teacher.double(),
    )
    for gradient, wanted in zip(both, right):
        close_gradient(gradient, wanted, 6)


def test_known_upstream(device):
    logits = logits_of((5, VOCAB), device)
    ids = ids_of((5,), VOCAB, device)
    g = logits_of((5,), device, seed=3, scale=1)
    logp, gradient = logpjit.logprobs_with_grad(logits, ids, g)
    assert torch.equal(logp, logpjit.logprobs(logits, ids))
    (same,) = gradients(lambda x: logpjit.logprobs(x, ids), g, logits)
    assert torch.equal(gradient, same)
    spent = logits.clone()
    version = spent._version
    _, over = logpjit.logprobs_with_grad(spent, ids, g, in_place=True)
    assert over.data_ptr() == spent.data_ptr() and spent._version > version
    assert torch.equal(spent, gradient)


def test_rows_do_not_depend_on_their_place(device):
    logits = logits_of((64, VOCAB), device)
    ids = ids_of((64,), VOCAB, device)
    whole = torch.stack(logpjit.logprobs_and_entropy(logits, ids))
    order = torch.randperm(64, device=device)
    moved = logpjit.logprobs_and_entropy(logits[order], ids[order])
    assert torch.equal(torch.stack(moved), whole[:, order])
    alone = logpjit.logprobs_and_entropy(logits[9:10], ids[9:10])
    assert torch.equal(torch.stack(alone)[:, 0], whole[:, 9])


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_rows(device, shape):
    logits = torch.zeros((*shape, VOCAB), device=device, requires_grad=True)
    ids = torch.zeros(shape, dtype=torch.int64, device=device)
    logp, entropy = logpjit.logprobs_and_entropy(logits, ids)
    assert logp.shape == shape and entropy.shape == shape
    (logp.sum() + entropy.sum() + logpjit.kl(logits, logits).sum()).backward()
    assert logits.grad.shape == logits.shape


def test_the_second_call_of_a_form_gives_the_first_ones_bits(device):
    """It goes another way: packed beforehand."""
    logits = logits_of((2, 5, VOCAB), device, torch.bfloat16)
    other = logits_of((2, 5, VOCAB), device, torch.bfloat16, seed=5)
    ids = ids_of((2, 5), VOCAB, device)
    g = logits_of((2, 5), device, seed=3, scale=1)

    def function(x):
        logp, entropy = logpjit.logprobs_and_entropy(x, ids, temperature=1.7)
        return logp - entropy

    first = function(logits), gradients(function, g, logits)[0]
    function(other)
    again = function(logits), gradients(function, g, logits)[0]
    uneven = gradients(function, g.mT.contiguous().mT, logits)[0]
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert torch.equal(first[1], uneven)
    view = logits[:, :-1]
    close(
        logpjit.logprobs(view, ids[:, :-1]), right_logp(view, ids[:, :-1])
    )
    for _ in range(2):
        with pytest.raises(ValueError, match="temperature"):
            logpjit.logprobs(logits, ids, temperature=-1.0)


