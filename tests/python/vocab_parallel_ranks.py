"""One rank of the vocab-parallel tests: MEETING RANK RANKS CASE [cuda]."""

import hashlib
import sys

import torch
from torch import distributed
from torch_device import (
    close,
    close_gradient,
    ids_of,
    leaf,
    logits_of,
    right_entropy,
    right_kl,
    right_logp,
)

import logpjit
from logpjit import vocab_parallel

VOCAB = 300
ROWS = (2, 3)


def bounds_of(name, ranks):
    """None for equal slices."""
    if name == "uneven":
        return [0, 41, VOCAB][: ranks + 1]
    if name in ("empty", "segments"):
        # Up to 40960 columns are one segment, which one rank owns.
        return [0] * ranks + [VOCAB]
    return None


def check_rows(name, place, bounds, device):
    logits = logits_of((*ROWS, VOCAB), device)
    if name == "masked":
        logits[..., bounds[1] :] = -torch.inf
    shape = (*ROWS, 20) if name == "many_ids" else ROWS
    ids = ids_of(shape, bounds[1] if name == "masked" else VOCAB, device)
    ids.view(-1)[1] = -100
    g = logits_of(shape, device, seed=3, scale=1)
    h = logits_of(ROWS, device, seed=4, scale=1)
    begin, end = place
    mine = leaf(logits[..., begin:end].contiguous())
    given = None if bounds_of(name, 2) is None else bounds
    order = "segments" if name == "segments" else "ranks"
    options = {"bounds": given, "temperature": 1.3, "order": order}
    logp, entropy = vocab_parallel.logprobs_and_entropy(mine, ids, **options)
    found = torch.cat((logp.reshape(-1), entropy.reshape(-1)))
    whole = leaf(logits.double())
    if name == "masked":
        finite = leaf(logits[..., : bounds[1]].double())
        whole = torch.nn.functional.pad(
            finite, (0, VOCAB - bounds[1]), value=-1e4
        )
    right = right_logp(whole, ids, 1.3), right_entropy(whole, 1.3)
    close(logp, right[0])
    close(entropy, right[1])
    if name == "segments":
        alone = logpjit.logprobs_and_entropy(logits, ids, temperature=1.3)
        assert torch.equal(logp, alone[0]) and torch.equal(entropy, alone[1])
    loss = (right[0] * g).sum() + (right[1] * h).sum()
    wanted = torch.autograd.grad(loss, whole)[0][..., begin:end]
    with torch.no_grad():
        logp.mul_(1)  # outputs may be written
    (made,) = torch.autograd.grad([logp, entropy], mine, [g, h])
    close_gradient(made, wanted, 6)
    return found


def check_kl(name, place, bounds, device, direction):
    student = logits_of((*ROWS, VOCAB), device)
    teacher = logits_of((*ROWS, VOCAB), device, seed=1)
    begin, end = place
    sides = [leaf(x[..., begin:end].contiguous()) for x in (student, teacher)]
    given = None if bounds_of(name, 2) is None else bounds
    value = vocab_parallel.kl(*sides, direction=direction, bounds=given)
    wholes = [leaf(student.double()), leaf(teacher.double())]
    right = right_kl(*wholes, direction)
    close(value, right, atol=4e-6)
    for made, wanted in zip(
        torch.autograd.grad(value.sum(), sides),
        torch.autograd.grad(right.sum(), wholes),
    ):
        close_gradient(made, wanted[..., begin:end], 6)
    return value.reshape(-1)


def check_loss(place, device):
    from logpjit import drop_ins

    logits = logits_of((6, VOCAB), device)
    labels = ids_of((6,), VOCAB, device)
    mine = logits[:, place[0] : place[1]].contiguous()
    options = {"lse_square_scale": 1e-3, "logit_scale": 0.8}
    losses, z_losses = drop_ins.cross_entropy_loss(
        mine, labels, process_group=distributed.group.WORLD, **options
    )
    right, right_z = drop_ins.cross_entropy_loss(logits, labels, **options)
    close(losses, right.double(), atol=5e-6)
    close(z_losses, right_z.double())


def expect(kind, text, call):
    try:
        call()
    except kind as reason:
        assert text in str(reason), reason
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def check_refusals(rank, place):
    begin, end = place
    mine = logits_of((4, VOCAB), "cpu")[:, begin:end].contiguous()
    ids = ids_of((4,), VOCAB, "cpu")

    def call(x=mine, y=ids, **options):
        return lambda: vocab_parallel.logprobs(x, y, **options)

    expect(ValueError, "bounds: 4 numbers", call(bounds=[0, 1, 2, VOCAB]))
    expect(ValueError, "bounds: [0, 400", call(bounds=[0, 400, VOCAB]))
    expect(ValueError, "bounds: give rank", call(bounds=[0, 20, VOCAB + 1]))
    expect(TypeError, "group: str", call(group="all"))
    expect(ValueError, "order: 'best'", call(order="best"))
    expect(ValueError, "vocab: 301", call(vocab=VOCAB + 1))
    expect(TypeError, "ids: dtype", call(y=ids.float()))
    expect(ValueError, "ids: shape", call(y=ids[:2]))
    expect(TypeError, "logits: dtype", call(x=mine.double()))
    expect(ValueError, "teacher: shape", lambda: vocab_parallel.kl(mine, mine[1:]))
    alone = distributed.new_group([0])
    if rank == 0:
        expect(ValueError, "bounds: 3 numbers", call(group=alone, bounds=[0, 150, 300]))
    # Every rank hears of it: another temperature on one of them.
    expect(
        ValueError,
        "did not make the same call",
        call(temperature=1.0 + rank),
    )
    close(call()(), right_logp(logits_of((4, VOCAB), "cpu"), ids))


def main(meeting, rank, ranks, name, device="cpu"):
    rank, ranks = int(rank), int(ranks)
    backend = "gloo" if device == "cpu" else "nccl"
    if device == "cuda":
        device = f"cuda:{rank}"
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=f"file://{meeting}", rank=rank, world_size=ranks
    )
    bounds = bounds_of(name, ranks)
    if bounds is None:
        bounds = [VOCAB // ranks * number for number in range(ranks + 1)]
    place = bounds[rank], bounds[rank + 1]
    if name == "refusals":
        check_refusals(rank, place)
    else:
        found = [check_rows(name, place, bounds, device)]
        if name in ("even", "uneven", "empty"):
            for direction in ("forward", "reverse"):
                found.append(check_kl(name, place, bounds, device, direction))
        if name == "even":
            check_loss(place, device)
        data = torch.cat(found).detach().cpu().numpy().tobytes()
        print("digest", hashlib.sha256(data).hexdigest())
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
