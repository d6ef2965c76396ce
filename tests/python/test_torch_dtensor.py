"""Sharded wrappers: their local rows without a copy, or a refusal that helps."""

import pytest
from torch_device import close, close_gradient, ids_of, logits_of, right_logp, torch

import logpjit

distributed = torch.distributed
if not distributed.is_available() or not distributed.is_gloo_available():
    pytest.skip("torch has no gloo", allow_module_level=True)

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import (  # noqa: E402
    DTensor,
    Partial,
    Replicate,
    Shard,
)

VOCAB = 300


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    meeting = tmp_path_factory.mktemp("mesh") / "meeting"
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=0, world_size=1
    )
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


@pytest.fixture
def logits():
    return logits_of((4, VOCAB), "cpu")


@pytest.fixture
def ids():
    return ids_of((4,), VOCAB, "cpu")


def wrapped(tensor, mesh, placement):
    return DTensor.from_local(tensor, mesh, [placement], run_check=False)


@pytest.mark.parametrize("placement", [Replicate(), Shard(0)])
def test_whole_rows_are_unwrapped(mesh, logits, ids, placement):
    x = wrapped(logits.requires_grad_(), mesh, placement)
    found = logpjit.logprobs(x, wrapped(ids, mesh, placement))
    assert type(found) is torch.Tensor
    close(found, right_logp(logits, ids))
    found.sum().backward()
    plain = logits.detach().double().requires_grad_()
    right_logp(plain, ids).sum().backward()
    close_gradient(logits.grad, plain.grad)


def test_unwrapping_copies_nothing(mesh, logits, monkeypatch):
    from logpjit._torch import rows

    seen = []
    plain = rows.forward

    def look(x, *rest):
        seen.append(x.data_ptr())
        return plain(x, *rest)

    monkeypatch.setattr(rows, "forward", look)
    logpjit.entropy(wrapped(logits, mesh, Replicate()), softcap=3.0)
    assert seen == [logits.data_ptr()]


def test_divergence_of_wrapped_sides(mesh, logits):
    sides = [wrapped(x, mesh, Shard(0)) for x in (logits, logits * 0.5)]
    close(
        logpjit.kl(*sides), logpjit.kl(logits, logits * 0.5).double()
    )


def test_replicated_logits_take_plain_ids(mesh, logits, ids):
    found = logpjit.logprobs(wrapped(logits, mesh, Replicate()), ids)
    close(found, right_logp(logits, ids))


@pytest.mark.parametrize("place", [-1, 1])
def test_a_sharded_vocabulary_is_refused_with_advice(mesh, logits, ids, place):
    x = wrapped(logits, mesh, Shard(place))
    with pytest.raises(ValueError, match="logits: sharded along the vocabulary"):
        logpjit.logprobs(x, ids)


def test_other_placements_are_refused(mesh, logits, ids):
    with pytest.raises(ValueError, match="logits: a partial DTensor"):
        logpjit.entropy(wrapped(logits, mesh, Partial()))
    with pytest.raises(ValueError, match="ids: placements"):
        logpjit.logprobs(
            wrapped(logits, mesh, Shard(0)), wrapped(ids, mesh, Replicate())
        )
    with pytest.raises(ValueError, match="ids: is a plain tensor of all rows"):
        logpjit.logprobs(wrapped(logits, mesh, Shard(0)), ids)
