"""The operators under torch.library's checks, torch.compile and fake tensors."""

import pytest
from torch_device import DEVICES, close, gradients, ids_of, logits_of, torch

import logpjit
import logpjit._torch.operators  # noqa: F401  (registers the operators)

VOCAB = 300
CHECKS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def forget_compiled_functions():
    """Dynamo counts recompilations of a function over all tests."""
    torch._dynamo.reset()


@pytest.mark.parametrize("terms", [1, 2, 31])
@pytest.mark.parametrize("indexed", [False, True])
def test_row_operator(device, terms, indexed):
    logits = logits_of((4, VOCAB), device).requires_grad_()
    index = torch.tensor([3, 1], device=device) if indexed else None
    rows = 2 if indexed else 4
    ids = ids_of((rows,), VOCAB, device) if terms & 1 else None
    torch.library.opcheck(
        torch.ops.logpjit.row_forward.default,
        (logits, ids, index, None, terms, 1.0, 0.0, VOCAB, 0),
        test_utils=CHECKS,
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("detached", [False, True])
def test_kl_operator(device, reverse, detached):
    student = logits_of((4, VOCAB), device).requires_grad_()
    teacher = logits_of((4, VOCAB), device, seed=1)
    teacher.requires_grad_(not detached)
    scalars = (1.0, 1.0, 0.0, 0.0, VOCAB, reverse)
    torch.library.opcheck(
        torch.ops.logpjit.kl_forward.default,
        (student, teacher, None, None, None, *scalars),
        test_utils=CHECKS,
    )


def loss(logits, ids, teacher):
    x = logits * 1.5
    logp, entropy = logpjit.logprobs_and_entropy(x, ids, temperature=1.25)
    kl = logpjit.kl(x, teacher, direction="reverse")
    return logp - 0.1 * entropy + kl


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_without_a_graph_break(device, dynamic):
    compiled = torch.compile(loss, fullgraph=True, dynamic=dynamic)
    for rows in (4, 6):
        logits = logits_of((rows, VOCAB), device)
        ids = ids_of((rows,), VOCAB, device)
        teacher = logits_of((rows, VOCAB), device, seed=1)
        close(compiled(logits, ids, teacher), loss(logits, ids, teacher))
        found = gradients(lambda x: compiled(x, ids, teacher), 1.0, logits)
        right = gradients(lambda x: loss(x, ids, teacher), 1.0, logits)
        close(found[0], right[0])


def test_the_package_can_be_met_first_in_a_compiled_function(device):
    @torch.compile(fullgraph=True)
    def function(x, ids):
        return logpjit.drop_ins.selective_log_softmax(x, ids)

    logits = logits_of((4, VOCAB), device)
    ids = ids_of((4,), VOCAB, device)
    close(function(logits, ids), logpjit.logprobs(logits, ids))


def test_fake_tensors_have_the_right_shapes():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        logits = torch.empty(2, 3, VOCAB, dtype=torch.bfloat16, requires_grad=True)
        ids = torch.zeros(2, 3, 4, dtype=torch.int64)
        logp, entropy = logpjit.logprobs_and_entropy(logits, ids)
        assert logp.shape == (2, 3, 4) and entropy.shape == (2, 3)
        assert logp.dtype == torch.float32
        (logp.sum() + entropy.sum()).backward()
        assert logits.grad.shape == logits.shape


def test_traced_code_cannot_overwrite(device):
    logits = logits_of((4, VOCAB), device).requires_grad_()
    ids = ids_of((4,), VOCAB, device)
    function = torch.compile(
        lambda x: logpjit.logprobs(x, ids, in_place=True), backend="eager"
    )
    with pytest.raises(Exception, match="in_place"):
        function(logits)
