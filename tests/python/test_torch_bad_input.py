"""Wrong arguments: the fitting exception, the argument's name, no launch."""

import pytest
from torch_device import DEVICES, ids_of, logits_of, torch

import logpjit

VOCAB = 16
X = logits_of((2, 3, VOCAB), "cpu")
IDS = ids_of((2, 3), VOCAB, "cpu")
META = torch.zeros(2, 3, VOCAB, device="meta")


def call(**changes):
    arguments = {"logits": X, "ids": IDS, **changes}
    return lambda: logpjit.logprobs(**arguments)


NESTED = torch.nested.nested_tensor([X[0], X[1]])

REFUSALS = [
    (TypeError, "logits: is torch.sparse_coo", call(logits=X.to_sparse())),
    (TypeError, "logits: is nested", call(logits=NESTED)),
    (TypeError, "ids: is torch.sparse_coo", call(ids=IDS.to_sparse())),
    (TypeError, "ids: is nested", call(ids=NESTED)),
    (TypeError, "temperature: is nested", call(temperature=NESTED)),
    (TypeError, "teacher: is nested", lambda: logpjit.kl(X, NESTED)),
    (TypeError, "ignore_index: str", call(ignore_index="none")),
    (TypeError, "ignore_index: float", call(ignore_index=-100.0)),
    (TypeError, "vocab: bool", call(vocab=True)),
    (TypeError, "softcap: list", call(softcap=[1.0])),
    (TypeError, "temprature: unexpected.*temperature", call(temprature=1.0)),
    (TypeError, "ids: unexpected", lambda: logpjit.kl(X, X, ids=IDS)),
    (ValueError, "direction: \\[", lambda: logpjit.kl(X, X, direction=[])),
    (TypeError, "logits: int", call(logits=5)),
    (TypeError, "logits: dtype float64", call(logits=X.double())),
    (TypeError, "logits: dtype int64", call(logits=IDS)),
    (TypeError, "ids: list", call(ids=[1, 2])),
    (TypeError, "ids: dtype float32", call(ids=IDS.float())),
    (
        TypeError,
        "ids: dtype float32",
        call(ids=IDS.float().requires_grad_()),
    ),
    (TypeError, "ids: needed", call(ids=None)),
    (TypeError, "ids: dtype int16", call(ids=IDS.short())),
    (ValueError, "ids: lies on meta", call(ids=IDS.to("meta"))),
    (ValueError, "ids: shape", call(ids=IDS[:, :2])),
    (ValueError, "ids: shape", call(ids=IDS.view(-1))),
    (ValueError, "logits: shape", call(logits=X[0, 0])),
    (ValueError, "logits: V is 0", call(logits=X[..., :0])),
    (ValueError, "logits: stride 2 along", call(logits=X[..., ::2])),
    (ValueError, "logits: stride", call(logits=X.transpose(1, 2))),
    (
        ValueError,
        "logits: strides",
        call(
            logits=torch.zeros(2, 3, 4, VOCAB).transpose(0, 1),
            ids=torch.zeros(3, 2, 4, dtype=torch.int64),
        ),
    ),
    (ValueError, "temperature: 0", call(temperature=0.0)),
    (ValueError, "temperature: -1", call(temperature=-1)),
    (ValueError, "temperature: inf", call(temperature=float("inf"))),
    (TypeError, "temperature: str", call(temperature="warm")),
    (ValueError, "temperature: shape", call(temperature=torch.ones(5))),
    (
        TypeError,
        "temperature: dtype",
        call(temperature=torch.ones(2, 3, dtype=torch.float64)),
    ),
    (
        ValueError,
        "temperature: has no gradient",
        call(temperature=torch.ones(2, 3, requires_grad=True)),
    ),
    (ValueError, "softcap", call(softcap=-2.0)),
    (ValueError, "vocab: 17", call(vocab=VOCAB + 1)),
    (ValueError, "vocab: 0", call(vocab=0)),
    (TypeError, "vocab: str", call(vocab="all")),
    (TypeError, "row_index: dtype", call(row_index=IDS[0].int())),
    (ValueError, "row_index: is not one", call(row_index=IDS)),
    (ValueError, "accumulate: shape", call(accumulate=X[:1])),
    (TypeError, "accumulate: dtype", call(accumulate=X.half())),
    (
        ValueError,
        "in_place, accumulate",
        call(accumulate=torch.zeros_like(X), in_place=True),
    ),
    (ValueError, "teacher: shape", lambda: logpjit.kl(X, X[:1])),
    (ValueError, "teacher: shape", lambda: logpjit.kl(X, X[..., :5])),
    (TypeError, "teacher: NoneType", lambda: logpjit.kl(X, None)),
    (ValueError, "teacher: lies on meta", lambda: logpjit.kl(X, META)),
    (ValueError, "direction", lambda: logpjit.kl(X, X, direction="back")),
    (
        ValueError,
        "upstream: shape",
        lambda: logpjit.logprobs_with_grad(X, IDS, torch.ones(3)),
    ),
    (
        TypeError,
        "upstream: dtype",
        lambda: logpjit.logprobs_with_grad(X, IDS, IDS),
    ),
    (
        ValueError,
        "outputs: 'entropie'",
        lambda: logpjit.row_values(X, IDS, outputs=["entropie"]),
    ),
    (ValueError, "outputs: none", lambda: logpjit.row_values(X, outputs=[])),
]


@pytest.fixture(params=[False, True], ids=["first", "met"])
def met_before(request):
    """Whether right calls of the same operations came before."""
    for _ in range(3 if request.param else 0):
        logpjit.logprobs(X, IDS)
        logpjit.kl(X, X)
        logpjit.logprobs(X, IDS, temperature=torch.ones(2, 3))


@pytest.mark.parametrize(("kind", "text", "function"), REFUSALS)
def test_refusals(met_before, kind, text, function):
    loaded = logpjit.counters()["loaded"]
    with pytest.raises(kind, match=text):
        function()
    assert logpjit.counters()["loaded"] == loaded, "something was launched"


@pytest.mark.skipif(DEVICES == ["cpu"], reason="needs a GPU")
def test_mixed_devices_are_refused():
    with pytest.raises(ValueError, match="ids: lies on cuda:0"):
        logpjit.logprobs(X, IDS.cuda())
    with pytest.raises(ValueError, match="teacher: lies on cpu"):
        logpjit.kl(X.cuda(), X)
