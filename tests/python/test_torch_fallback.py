"""What torch computes where the library cannot, and when it does."""

import logging
import os
import subprocess
import sys

import pytest
from torch_device import (
    DEVICES,
    close,
    close_gradient,
    gradients,
    ids_of,
    logits_of,
    right_kl,
    right_logp,
    torch,
)

import logpjit
from logpjit._torch import backends
from logpjit._torch.eager import Eager

VOCAB = 300


@pytest.fixture(params=DEVICES)
def device(request):
    """A device on which torch computes."""
    backends.forget()
    backends._chosen[torch.zeros(0, device=request.param).device] = Eager()
    yield request.param
    backends.forget()


def both(function, *inputs):
    """(value, gradients) by torch and by the library."""
    found = [(function(*inputs), gradients(function, 1.0, *inputs))]
    kept = dict(backends._chosen)
    backends._chosen.clear()
    found.append((function(*inputs), gradients(function, 1.0, *inputs)))
    backends._chosen.update(kept)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 1.5, "vocab": 290},
        {"softcap": 4.0},
        {"ignore_index": 3},
    ],
)
def test_values_and_gradients_are_the_librarys(device, options):
    logits = logits_of((2, 5, VOCAB), device)
    ids = ids_of((2, 5), 290, device)
    ids[0, 1], ids[1, 0] = -100, 3

    def function(x):
        names = ("logp", "entropy", "lse", "squares")
        found = logpjit.row_values(x, ids, outputs=names, **options)
        return torch.stack(found[:4])

    (value, (gradient,)), (right, (wanted,)) = both(function, logits)
    close(value, right, atol=5e-6)
    close_gradient(gradient, wanted, 6)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_kl(device, direction):
    student = logits_of((2, 5, VOCAB), device)
    teacher = logits_of((2, 5, VOCAB), device, seed=1)

    def function(x, y):
        return logpjit.kl(x, y, direction=direction, temperature=1.5)

    (value, made), (right, wanted) = both(function, student, teacher)
    close(value, right, atol=5e-6)
    close(value, right_kl(student / 1.5, teacher / 1.5, direction), atol=5e-6)
    for gradient, one in zip(made, wanted):
        close_gradient(gradient, one, 6)


def test_edge_rows(device):
    logits = logits_of((6, VOCAB), device)
    logits[0] = -torch.inf
    logits[1, 1:] = -torch.inf
    logits[2, 10:] = -torch.inf
    logits[3, 7] = torch.nan
    logits[4] += 1e6
    ids = torch.tensor([0, 0, 3, 5, 6, -100], device=device)

    def values(x):
        return torch.stack(logpjit.logprobs_and_entropy(x, ids))

    def divergence(x):
        return logpjit.kl(x, logits * 0.5, direction="reverse")

    for function in (values, divergence):
        (value, (gradient,)), (right, (wanted,)) = both(function, logits)
        torch.testing.assert_close(
            value, right, equal_nan=True, atol=5e-6, rtol=1e-6
        )
        torch.testing.assert_close(
            gradient, wanted, equal_nan=True, atol=5e-6, rtol=1e-5
        )


def test_views_indices_and_chunks(device, monkeypatch):
    store = logits_of((3, 6, VOCAB), device)
    store[:, -1] = torch.nan
    view = store[:, :-1]
    ids = ids_of((3, 5), VOCAB, device)
    whole = logpjit.logprobs(view, ids)
    close(whole, right_logp(view, ids))
    rows = torch.tensor([8, 2], device=device)
    some = logpjit.logprobs(view, ids.reshape(-1)[rows], row_index=rows)
    assert torch.equal(some, whole.reshape(-1)[rows])
    (gradient,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, view)
    from logpjit._torch import eager

    monkeypatch.setattr(eager, "_budget", lambda device_type: 2 * VOCAB)
    assert torch.equal(logpjit.logprobs(view, ids), whole)
    (same,) = gradients(lambda x: logpjit.logprobs(x, ids), 1.0, view)
    assert torch.equal(same, gradient)


def test_accumulate_and_in_place(device):
    logits = logits_of((4, VOCAB), device)
    ids = ids_of((4,), VOCAB, device)
    g = torch.ones(4, device=device)
    _, right = logpjit.logprobs_with_grad(logits, ids, g)
    total = torch.ones_like(logits)
    logpjit.logprobs_with_grad(logits, ids, g, accumulate=total)
    close(total, right + 1)
    spent = logits.clone()
    logpjit.logprobs_with_grad(spent, ids, g, in_place=True)
    assert torch.equal(spent, right)


PROGRAM = """
import logging, torch, logpjit
logging.basicConfig(format="%(message)s")
logpjit.configure(cache_directory="", host_compiler="/no/such/compiler", **{{{}}})
logits = torch.zeros(2, 300, requires_grad=True)
for _ in range(2):
    value = logpjit.entropy(logits)
value.sum().backward()
print(round(value[0].item(), 4), logpjit.counters(), logpjit.doctor(["cpu"]))
"""


def run(settings):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(settings)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_missing_compiler_still_gives_values():
    """By the library's own fallback, said once for each kernel."""
    done = run("")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5.7038")
    said = [line for line in done.stderr.splitlines() if "compiler" in line]
    assert len(said) == len(set(said)) == 2, done.stderr
    assert "'fallbacks': 3" in done.stdout


def test_without_fallbacks_a_missing_compiler_is_an_error():
    done = run("'fallback': False")
    assert done.returncode != 0
    assert "logpjit._library.Error" in done.stderr
    assert "/no/such/compiler" in done.stderr


def test_torch_takes_over_for_good_and_says_so_once(caplog):
    backends.forget()
    device = torch.device("cpu")

    class Broken(backends.Kernels):
        def __init__(self):
            pass

        def row_forward(self, *_):
            raise logpjit.Error("no compiler here", status=3)

    backends._chosen[device] = Broken()
    with caplog.at_level(logging.WARNING, logger="logpjit"):
        for _ in range(2):
            found = logpjit.entropy(torch.zeros(2, VOCAB))
    close(found, torch.full((2,), VOCAB, dtype=torch.float64).log())
    assert caplog.text.count("no compiler here") == 1
    assert backends.choices()["cpu"]["backend"] == "torch"
    backends.forget()


def test_other_failures_are_not_hidden():
    backends.forget()

    class Broken(backends.Kernels):
        def __init__(self):
            pass

        def row_forward(self, *_):
            raise logpjit.Error("in no cache", status=8)

    backends._chosen[torch.device("cpu")] = Broken()
    with pytest.raises(logpjit.Error, match="in no cache"):
        logpjit.entropy(torch.zeros(2, VOCAB))
    backends.forget()
