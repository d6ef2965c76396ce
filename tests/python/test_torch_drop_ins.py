"""The trainers' own names, against their eager definitions in float64."""

import inspect

import pytest
from torch_device import (
    DEVICES,
    close,
    close_gradient,
    gradients,
    ids_of,
    logits_of,
    right_entropy,
    right_logp,
    torch,
)

from logpjit import drop_ins

VOCAB = 300


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def eager_cross_entropy(
    logits, labels, smoothing=0.0, scale=1.0, z_scale=0.0, ignore=-100
):
    """What flash-attn documents, in float64."""
    z = logits.double() * scale
    lse = torch.logsumexp(z, -1)
    live = labels != ignore
    at = z.gather(-1, torch.where(live, labels, 0)[:, None])[:, 0]
    losses = lse - (1 - smoothing) * at - smoothing * z.mean(-1)
    z_losses = z_scale * lse * lse
    return (
        torch.where(live, losses + z_losses, 0.0),
        torch.where(live, z_losses, 0.0),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"logit_scale": 0.7},
        {"ignore_index": 5},
        {"lse_square_scale": 1e-3},
        {"label_smoothing": 0.1, "lse_square_scale": 1e-3, "logit_scale": 1.5},
    ],
)
def test_cross_entropy_loss(device, dtype, options):
    logits = logits_of((6, VOCAB), device, dtype)
    labels = ids_of((6,), VOCAB, device)
    labels[2] = options.get("ignore_index", -100)
    eager = {
        "smoothing": options.get("label_smoothing", 0.0),
        "scale": options.get("logit_scale", 1.0),
        "z_scale": options.get("lse_square_scale", 0.0),
        "ignore": options.get("ignore_index", -100),
    }
    losses, z_losses = drop_ins.cross_entropy_loss(logits, labels, **options)
    right, right_z = eager_cross_entropy(logits, labels, **eager)
    close(losses, right, atol=5e-6)
    close(z_losses, right_z)
    assert losses[2] == 0 and z_losses[2] == 0
    g = logits_of((6,), device, seed=3, scale=1)
    (found,) = gradients(
        lambda x: drop_ins.cross_entropy_loss(x, labels, **options)[0], g, logits
    )
    (wanted,) = gradients(
        lambda x: eager_cross_entropy(x, labels, **eager)[0], g, logits.double()
    )
    close_gradient(found, wanted, 4)


def test_cross_entropy_loss_over_the_logits(device):
    logits = logits_of((6, VOCAB), device)
    labels = ids_of((6,), VOCAB, device)
    middle = logits.clone().requires_grad_() * 1.0
    losses, _ = drop_ins.cross_entropy_loss(
        middle, labels, inplace_backward=True
    )
    losses.sum().backward()
    (right,) = gradients(
        lambda x: eager_cross_entropy(x, labels)[0], 1.0, logits.double()
    )
    close_gradient(middle.detach(), right)


def test_argument_orders_are_the_trainers():
    def names(function):
        return list(inspect.signature(function).parameters)

    assert names(drop_ins.cross_entropy_loss) == [
        "logits",
        "labels",
        "precomputed_lse",
        "label_smoothing",
        "logit_scale",
        "lse_square_scale",
        "ignore_index",
        "inplace_backward",
        "process_group",
    ]
    assert names(drop_ins.logprobs_from_logits) == [
        "logits",
        "labels",
        "inplace_backward",
    ]
    assert names(drop_ins.selective_log_softmax) == ["logits", "index"]
    assert names(drop_ins.entropy_from_logits) == ["logits", "chunk_size"]


@pytest.mark.parametrize("inplace", [False, True])
def test_logprobs_from_logits(device, inplace):
    logits = logits_of((2, 5, VOCAB), device, torch.bfloat16)
    labels = ids_of((2, 5), VOCAB, device)
    source = logits.clone().requires_grad_()
    middle = source * 1.0
    found = drop_ins.logprobs_from_logits(
        middle, labels, inplace_backward=inplace
    )
    close(found, right_logp(logits, labels))
    found.sum().backward()
    (right,) = gradients(lambda x: right_logp(x, labels), 1.0, logits.double())
    close_gradient(source.grad, right)
    assert torch.equal(middle.detach(), source.grad) == inplace


def test_selective_log_softmax(device):
    logits = logits_of((2, 5, VOCAB), device)
    for shape in ((2, 5), (2, 5, 3)):
        index = ids_of(shape, VOCAB, device)
        found = drop_ins.selective_log_softmax(logits, index)
        close(found, right_logp(logits, index))


def test_entropy_from_logits(device):
    logits = logits_of((2, 5, VOCAB), device)
    close(drop_ins.entropy_from_logits(logits), right_entropy(logits))
    close(drop_ins.entropy_from_logits(logits, 2), right_entropy(logits))
