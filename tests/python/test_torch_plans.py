"""Calls of a form met before: they take the short way, and give what the long
one gives."""

import gc
import weakref

import pytest
from torch_device import DEVICES, gradients, ids_of, logits_of, torch

import logpjit
from logpjit._torch import divergence, front, plan, plans, rows

VOCAB = 300
ROWS = (3, 5)


@pytest.fixture(params=DEVICES)
def device(request):
    plans.forget()
    return request.param


def picked(x, ids, names, **options):
    """All values that have a gradient, weighted differently."""
    found = logpjit.row_values(x, ids, outputs=names, **options)
    made = [value for value in found[:4] if value is not None]
    flat = [(n + 1.0) * v.flatten() for n, v in enumerate(made)]
    return torch.cat(flat)


def teacher_of(x):
    return logits_of(x.shape, x.device, seed=7)


# name -> (function of logits and ids). Each is one form.
FORMS = {
    "logprobs": lambda x, i: logpjit.logprobs(x, i),
    "entropy": lambda x, i: logpjit.entropy(x),
    "both": lambda x, i: torch.cat(logpjit.logprobs_and_entropy(x, i)),
    "everything": lambda x, i: picked(
        x, i, ("logp", "entropy", "lse", "squares", "argmax")
    ),
    "squares": lambda x, i: picked(x, i, "squares"),
    "scalars": lambda x, i: logpjit.logprobs(
        x, i, temperature=1.5, softcap=9.0, vocab=290, ignore_index=-1
    ),
    "many ids": lambda x, i: logpjit.logprobs(x, torch.stack((i, i + 1), -1)),
    "temperatures": lambda x, i: logpjit.logprobs(
        x, i, temperature=1 + i.float() / VOCAB
    ),
    "row_index": lambda x, i: logpjit.logprobs(
        x, i.flatten()[:2], row_index=i.flatten().argsort()[:2]
    ),
    "views": lambda x, i: logpjit.logprobs(x[:, :-1], i[:, :-1]),
    "in_place": lambda x, i: logpjit.logprobs(x * 1.0, i, in_place=True),
    "forward kl": lambda x, i: logpjit.kl(x, teacher_of(x)),
    "reverse kl": lambda x, i: logpjit.kl(
        x, teacher_of(x), direction="reverse", temperature=1.5
    ),
    "kl of both": lambda x, i: logpjit.kl(x, x * 0.5),
    "kl by row": lambda x, i: logpjit.kl(
        x,
        teacher_of(x),
        temperature=1 + i.float() / VOCAB,
        teacher_temperature=2.0,
    ),
    "kl of rows": lambda x, i: logpjit.kl(
        x, teacher_of(x), row_index=i.flatten().argsort()[:4]
    ),
}


def found_by(function, device, seed, upstream):
    logits = logits_of(ROWS + (VOCAB,), device, seed=seed)
    ids = ids_of(ROWS, 280, device, seed=seed)
    made = gradients(lambda x: function(x, ids), upstream, logits)
    return function(logits, ids), *made


def refuse(*_):
    raise AssertionError("went the long way")


@pytest.mark.parametrize("upstream", [1.0, "random"])
@pytest.mark.parametrize("name", FORMS)
def test_the_short_way_gives_the_same_bits(device, monkeypatch, name, upstream):
    function = FORMS[name]
    if upstream == "random":
        shape = function(
            logits_of(ROWS + (VOCAB,), device), ids_of(ROWS, 280, device)
        ).shape
        plans.forget()
        upstream = logits_of(shape, device, seed=5, scale=1)
    wanted = []
    for seed in (1, 2):
        plans.forget()
        wanted.append(found_by(function, device, seed, upstream))
    monkeypatch.setattr(front, "_checked_row_values", refuse)
    monkeypatch.setattr(front, "_checked_kl", refuse)
    monkeypatch.setattr(rows, "backward", refuse)
    monkeypatch.setattr(divergence, "backward", refuse)
    for seed, right in zip((1, 2), wanted):
        found = found_by(function, device, seed, upstream)
        for one, other in zip(found, right):
            assert torch.equal(one, other), name


def test_another_form_goes_the_long_way(device, monkeypatch):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    calls = [
        lambda: logpjit.logprobs(logits[:2], ids[:2]),
        lambda: logpjit.logprobs(logits.half(), ids),
        lambda: logpjit.logprobs(logits, ids.int()),
        lambda: logpjit.logprobs(logits, ids[:, None]),
        lambda: logpjit.logprobs(logits, ids, temperature=2.0),
        lambda: logpjit.logprobs(logits, ids, vocab=True),
        lambda: logpjit.logprobs(logits, ids, accumulate=logits * 0),
        lambda: logpjit.logprobs(
            torch.zeros(3, 2 * VOCAB, device=device)[:, :VOCAB], ids
        ),
    ]
    logpjit.logprobs(logits, ids)
    logpjit.logprobs(logits[:, :1], ids, vocab=1)
    monkeypatch.setattr(front, "_checked_row_values", refuse)
    logpjit.logprobs(logits, ids)
    for call in calls:
        with pytest.raises(AssertionError, match="long way"):
            call()


def test_accumulate(device, monkeypatch):
    logits = logits_of((3, VOCAB), device).requires_grad_()
    ids = ids_of((3,), VOCAB, device)
    totals = []
    for number in range(3):
        if number == 2:
            monkeypatch.setattr(front, "_checked_row_values", refuse)
            monkeypatch.setattr(rows, "backward", refuse)
        total = torch.full_like(logits, 0.5).detach()
        logpjit.logprobs(logits, ids, accumulate=total).sum().backward()
        totals.append(total)
    assert logits.grad is None
    assert torch.equal(totals[0], totals[2])


def test_one_value_of_several_is_differentiated(device):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    for _ in range(2):
        for number in (0, 1):
            (found,) = gradients(
                lambda x, n=number: logpjit.logprobs_and_entropy(x, ids)[n],
                1.0,
                logits,
            )
            alone = logpjit.logprobs if number == 0 else logpjit.entropy
            given = (ids,) if number == 0 else ()
            (right,) = gradients(lambda x: alone(x, *given), 1.0, logits)
            assert torch.equal(found, right)


def test_what_the_library_refuses_is_said_at_every_call(device):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    logpjit.logprobs(logits, ids)
    for _ in range(2):
        with pytest.raises(ValueError, match="temperature"):
            logpjit.logprobs(logits, ids, temperature=-1.0)


def test_a_failure_of_the_library_is_told_by_the_long_way(device, monkeypatch):
    logits = logits_of((3, VOCAB), device).requires_grad_()
    ids = ids_of((3,), VOCAB, device)
    right = logpjit.logprobs(logits, ids)
    (known,) = plans._known.values()
    monkeypatch.setattr(known, "forward", lambda *_: None)
    monkeypatch.setattr(known, "_run", lambda *_: 3)
    monkeypatch.setattr(known, "_run_backward", lambda *_: 3)
    assert torch.equal(logpjit.logprobs(logits, ids), right)
    (found,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    monkeypatch.undo()
    (right,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    assert torch.equal(found, right)


MISSING = {
    "ids": lambda x: logpjit.logprobs(x, None),
    "teacher": lambda x: logpjit.kl(x, None),
    "ids of both": lambda x: logpjit.logprobs_and_entropy(x, None),
    "ids in a list": lambda x: logpjit.logprobs(x, [0, 0, 0]),
    "teacher in a list": lambda x: logpjit.kl(x, [0, 0, 0]),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_named_when_the_form_is_known(device, name):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    for _ in range(2):
        logpjit.logprobs(logits, ids)
        logpjit.logprobs_and_entropy(logits, ids)
        logpjit.kl(logits, logits * 0.5)
        with pytest.raises(TypeError, match=name.partition(" ")[0]):
            MISSING[name](logits)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_mutable_numbers_make_no_form(device, shape):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    cap = torch.full(shape, 4.0)
    first = logpjit.logprobs(logits, ids, softcap=cap)
    cap.fill_(40.0)
    again = logpjit.logprobs(logits, ids, softcap=cap)
    assert torch.equal(again, logpjit.logprobs(logits, ids, softcap=40.0))
    assert not torch.equal(first, again)


def test_nothing_is_kept_alive(device):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    for _ in range(3):
        logpjit.logprobs(logits, ids)
        logpjit.kl(logits, logits)
        leaf = logits.clone().requires_grad_()
        logpjit.logprobs_and_entropy(leaf, ids)[0].sum().backward()
    kept = [weakref.ref(tensor) for tensor in (logits, ids, leaf)]
    del logits, ids, leaf
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3


@pytest.mark.parametrize(
    "around",
    [
        torch.inference_mode,
        torch.no_grad,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
)
def test_modes_come_and_go(device, monkeypatch, around):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    right = logpjit.logprobs(logits, ids)
    monkeypatch.setattr(front, "_checked_row_values", refuse)
    for _ in range(3):
        assert torch.equal(logpjit.logprobs(logits, ids), right)
        with around():
            assert torch.equal(logpjit.logprobs(logits, ids), right)
            assert logpjit.logprobs(logits, ids).dtype == torch.float32


def test_a_torch_without_quick_checks(device, monkeypatch):
    monkeypatch.setattr(plan, "_guards", None)
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    right = logpjit.logprobs(logits, ids)
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    monkeypatch.setattr(front, "_checked_row_values", refuse)
    assert torch.equal(logpjit.logprobs(logits, ids), right)
    (found,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, logits)
    assert torch.equal(found, gradient) and not plans._recent


def test_transforms_of_functions_are_refused(device):
    logits = logits_of((3, VOCAB), device)
    ids = ids_of((3,), VOCAB, device)
    for _ in range(2):
        for transform in (torch.func.grad, torch.func.vmap):
            with pytest.raises(RuntimeError, match="torch.func"):
                transform(lambda x: logpjit.entropy(x).sum())(logits[:, None])
            with pytest.raises(RuntimeError, match="torch.func"):
                transform(lambda x: logpjit.kl(x, x).sum())(logits[:, None])
        logpjit.logprobs(logits, ids)
