"""Times on the GPU, by events, and memory."""

import statistics

import torch


def _event():
    return torch.cuda.Event(enable_timing=True)


def _times(call, repeats, warmup=2):
    """Milliseconds of each call."""
    for _ in range(warmup):
        call()
    times = []
    for _ in range(repeats):
        begin, end = _event(), _event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times


def copy_ms(rows, vocab):
    """A plain copy: one read and one write of logits."""
    source = torch.zeros(rows, vocab, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(source)
    return statistics.median(_times(lambda: target.copy_(source), 11))


def gradient(function, logits, upstream, repeats):
    """Of the forward and backward of one call: median milliseconds, spread, and
    the most memory beyond inputs and gradient."""
    leaf = logits.detach().requires_grad_()

    def call():
        return torch.autograd.grad(function(leaf), leaf, upstream)[0]

    times = _times(call, repeats)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    made = call()
    torch.cuda.synchronize()
    beyond = torch.cuda.max_memory_allocated() - before - made.nbytes
    middle = statistics.median(times)
    return {
        "ms": middle,
        "spread": (max(times) - min(times)) / middle,
        "beyond_bytes": beyond,
    }
