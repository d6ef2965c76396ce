"""What a call costs the host: the kernel is so small that the host is all there
is to wait for."""

import statistics
import subprocess
import sys
import time

import torch

import logpjit
from logpjit import _structs
from logpjit._torch import backends
from logpjit._torch.rows import RowOptions

ROWS, VOCAB = 1, 1024
IN_FLIGHT = 200  # calls between two synchronisations, which are not timed


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def median_us(call, calls, device="cuda"):
    for _ in range(IN_FLIGHT):
        call()
    times = []
    clock = time.perf_counter_ns
    while len(times) < calls:
        _wait(device)
        for _ in range(IN_FLIGHT):
            begin = clock()
            call()
            times.append(clock() - begin)
    return statistics.median(times) / 1e3


class _Bare(torch.autograd.Function):
    """What autograd itself takes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.new_empty((ROWS,), dtype=torch.float32)

    @staticmethod
    def backward(ctx, _):
        (x,) = ctx.saved_tensors
        return torch.empty_like(x)


def _library_call(logits, ids):
    """The library's function alone, with the launch."""
    kernels = backends.backend(logits.device)
    value = torch.empty(ROWS, device=logits.device)
    options = RowOptions(_structs.LOGP, 1.0, 0.0, VOCAB, 0)
    values = (value, None, None, None, None)
    packed = kernels.row_forward_call(
        logits, ids, None, None, options, values, None
    )
    function = kernels.library.logpjit_forward
    stream = kernels.stream()
    return lambda kept=value: function(kernels.handle, packed, stream)


def calls_of(device):
    """name -> call."""
    x = torch.randn(ROWS, VOCAB, device=device, dtype=torch.bfloat16)
    ids = torch.zeros(ROWS, dtype=torch.int64, device=device)
    g = torch.ones(ROWS, device=device)
    leaf = x.clone().requires_grad_()

    def both(function):
        return lambda: torch.autograd.grad(function(leaf), leaf, g)

    return {
        "torch.empty": lambda: torch.empty((ROWS,), device=device),
        "g.add_(1)": lambda: g.add_(1),
        "autograd.Function alone, forward": lambda: _Bare.apply(leaf),
        "autograd.Function alone, forward + backward": both(_Bare.apply),
        "the library's call": _library_call(x, ids),
        "logprobs": lambda: logpjit.logprobs(x, ids),
        "logprobs with autograd": lambda: logpjit.logprobs(leaf, ids),
        "logprobs forward + backward": both(lambda z: logpjit.logprobs(z, ids)),
        "entropy with autograd": lambda: logpjit.entropy(leaf),
        "kl with autograd": lambda: logpjit.kl(leaf, x),
    }


def graph_us(calls=100):
    """(device, host) microseconds of one of the calls in a captured graph."""
    x = torch.randn(ROWS, VOCAB, device="cuda", dtype=torch.bfloat16)
    ids = torch.zeros(ROWS, dtype=torch.int64, device="cuda")
    logpjit.logprobs(x, ids)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            logpjit.logprobs(x, ids)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    for _ in range(20):
        graph.replay()
    end.record()
    end.synchronize()
    device = begin.elapsed_time(end) * 1e3 / 20 / calls
    clock, times = time.perf_counter_ns, []
    for _ in range(50):
        torch.cuda.synchronize()
        start = clock()
        graph.replay()
        times.append(clock() - start)
    return device, statistics.median(times) / 1e3 / calls


def import_ms(times=9):
    """Processor time of `import logpjit` in a fresh interpreter."""
    code = (
        "import time; begin = time.process_time(); import logpjit; "
        "print(time.process_time() - begin)"
    )
    found = []
    for _ in range(times):
        said = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        found.append(float(said) * 1e3)
    return statistics.median(found)


def report(table, calls, device="cuda"):
    found = {
        name: median_us(call, calls, device)
        for name, call in calls_of(device).items()
    }
    for name, took in found.items():
        table.add(f"host: {name}", took, "us")
    python = found["logprobs"] - found["the library's call"]
    table.add("host: Python of logprobs", python, "us", 15)
    alone = found["the library's call"]
    alone += found["autograd.Function alone, forward"]
    table.add(
        "host: Python of logprobs with autograd, beyond autograd's own",
        found["logprobs with autograd"] - alone,
        "us",
        15,
    )
    if device == "cuda":
        on_device, on_host = graph_us()
        table.add("captured graph: a call, host", on_host, "us", 2)
        table.add("captured graph: a call, device", on_device, "us")
    table.add("import logpjit", import_ms(), "ms", 50)
