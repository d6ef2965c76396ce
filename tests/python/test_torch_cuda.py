"""What only a GPU shows: streams, graphs, devices, memory, large offsets."""

import pytest
from torch_device import (
    close,
    close_gradient,
    gradients,
    ids_of,
    logits_of,
    right_entropy,
    right_logp,
    torch,
)

import logpjit

if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

VOCAB = 5000


@pytest.fixture
def logits():
    return logits_of((64, VOCAB), "cuda", torch.bfloat16)


@pytest.fixture
def ids():
    return ids_of((64,), VOCAB, "cuda")


def step(x, ids):
    """Value and gradient of a loss."""
    logp, entropy = logpjit.logprobs_and_entropy(x, ids)
    kl = logpjit.kl(x, x.detach() * 0.5)
    loss = (logp - 0.1 * entropy + kl).sum()
    return loss, torch.autograd.grad(loss, x)[0]


def test_nothing_synchronises(logits, ids):
    step(logits.requires_grad_(), ids)
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(logits, ids)
        logpjit.logprobs_with_grad(logits, ids, torch.ones_like(ids).float())
        logpjit.logprobs(logits, ids, ignore_index=7)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_busy_stream_is_not_waited_for(logits, ids):
    x = logits.requires_grad_()
    step(x, ids)
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(400_000_000)
    step(x, ids)
    done.record()
    assert not done.query(), "the call waited for the stream"
    torch.cuda.synchronize()


def test_side_streams_keep_their_order(logits, ids):
    right = step(logits.requires_grad_(), ids)
    side = torch.cuda.Stream()
    source = torch.zeros_like(logits, requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        with torch.no_grad():
            source.copy_(logits)
        found = step(source, ids)
    side.synchronize()
    assert torch.equal(found[1], right[1])
    close(found[0], right[0])


def test_graphs_replay_forward_and_backward(logits, ids):
    x = logits.clone().requires_grad_()
    step(x, ids)  # prepares
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss, gradient = step(x, ids)
    other = logits_of((64, VOCAB), "cuda", torch.bfloat16, seed=9)
    with torch.no_grad():
        x.copy_(other)
    graph.replay()
    right = step(other.requires_grad_(), ids)
    assert torch.equal(gradient, right[1])
    close(loss, right[0])


def test_a_first_call_inside_a_capture_works(ids):
    x = logits_of((64, VOCAB + 8), "cuda", torch.bfloat16).requires_grad_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = logpjit.logprobs(x, ids)
    graph.replay()
    close(value, right_logp(x, ids))


def test_compile_with_cuda_graphs(logits, ids):
    def function(x):
        return logpjit.logprobs(x * 1.5, ids) + logpjit.entropy(x * 1.5)

    compiled = torch.compile(function, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        found = gradients(compiled, 1.0, logits)[0].clone()
    right = gradients(function, 1.0, logits)[0]
    torch.testing.assert_close(found, right, atol=1e-2, rtol=1e-2)


def test_no_memory_beyond_the_gradient():
    x = torch.randn(512, 151936, device="cuda", dtype=torch.bfloat16)
    ids = ids_of((512,), 151936, "cuda")
    teacher = x * 0.5
    x.requires_grad_()
    for call in (
        lambda: logpjit.logprobs(x, ids),
        lambda: logpjit.entropy(x),
        lambda: torch.cat(logpjit.logprobs_and_entropy(x, ids)),
        lambda: logpjit.kl(x, teacher, direction="reverse"),
    ):
        torch.autograd.grad(call().sum(), x)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        (gradient,) = torch.autograd.grad(call().sum(), x)
        beyond = torch.cuda.max_memory_allocated() - before
        beyond -= gradient.numel() * gradient.element_size()
        assert beyond <= 2**20
        del gradient


def test_in_place_needs_no_gradient_memory():
    x = torch.randn(512, 151936, device="cuda", dtype=torch.bfloat16)
    ids = ids_of((512,), 151936, "cuda")
    x.requires_grad_()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    value = logpjit.logprobs(x, ids, in_place=True)
    torch.autograd.grad(value.sum(), x)
    assert torch.cuda.max_memory_allocated() - before <= 2**20


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_large_vocabulary(dtype):
    logits = logits_of((16, 151936), "cuda", dtype)
    ids = ids_of((16,), 151936, "cuda")

    def ours(x):
        return torch.stack(logpjit.logprobs_and_entropy(x, ids))

    def right(x):
        return torch.stack((right_logp(x, ids), right_entropy(x)))

    close(ours(logits), right(logits.double()), atol=5e-6)
    g = logits_of((2, 16), "cuda", seed=3, scale=1)
    (found,) = gradients(ours, g, logits)
    (wanted,) = gradients(right, g, logits.double())
    close_gradient(found, wanted, 4)


def test_many_elements():
    """More than 2^31 logits: 4.3 GB and as much gradient."""
    free, _ = torch.cuda.mem_get_info()
    if free < 14 * 2**30:
        pytest.skip("needs 14 GiB of free GPU memory")
    rows = 2**31 // 151936 + 2
    logits = torch.zeros(rows, 151936, device="cuda", dtype=torch.bfloat16)
    logits[-1, -1] = 4
    ids = torch.full((rows,), 151935, device="cuda")
    logits.requires_grad_()
    value = logpjit.logprobs(logits, ids)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    tail = logits.detach()[-2:]
    close(value[-2:], right_logp(tail, ids[-2:]))
    (wanted,) = gradients(
        lambda x: right_logp(x, ids[-2:]), 1.0, tail.double()
    )
    close_gradient(gradient[-2:], wanted)


def test_a_device_that_is_not_current(ids):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    logits = logits_of((64, VOCAB), "cuda:1")
    other_ids = ids.to("cuda:1")
    assert torch.cuda.current_device() == 0
    found = logpjit.logprobs(logits, other_ids)
    assert torch.cuda.current_device() == 0
    close(found, right_logp(logits, other_ids))
    (gradient,) = gradients(
        lambda x: logpjit.logprobs(x, other_ids), 1.0, logits
    )
    (right,) = gradients(
        lambda x: right_logp(x, other_ids), 1.0, logits.double()
    )
    close_gradient(gradient, right)


def test_another_thread(logits, ids):
    from concurrent.futures import ThreadPoolExecutor

    right = step(logits.clone().requires_grad_(), ids)[1]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda _: step(logits.clone().requires_grad_(), ids)[1], range(8)
        )
    assert all(torch.equal(one, right) for one in found)
