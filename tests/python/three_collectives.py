"""logp of a vocabulary over a process group, with one collective (the package)
and with the three that others use, written with torch.distributed on the same
statistics kernel: MAX of the maxima, SUM of the rescaled sums, SUM of the logits
that were picked. Checks both against float64 and times them in one run, in CUDA
graphs where there is a GPU.

    three_collectives.py --ranks 2 [--device cuda] [--rows 1024,8192] [--json F]
    three_collectives.py --rank R --ranks P --meeting FILE ...    # one of them

Rank 0 prints a line for each number of rows; microseconds are the median of the
slowest rank."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import distributed

from logpjit import vocab_parallel
from logpjit._torch import shards
from logpjit._torch.rows import RowOptions

HEADER_BYTES = 32
FLOATS = 3  # a row's record: maximum, sum, the picked logit
ROUNDS = 9


class Scene:
    """One rank's tensors for one number of rows."""

    def __init__(self, rank, ranks, rows, vocab, device):
        self.width = vocab // ranks
        self.ranks = ranks
        self.device = device
        generator = torch.Generator().manual_seed(rank)
        block = torch.randn(1 << 16, generator=generator, dtype=torch.float32)
        count = rows * self.width
        block = (2 * block).to(torch.bfloat16).to(device)
        self.logits = block.repeat(count // block.numel() + 1)[:count]
        self.logits = self.logits.view(rows, self.width)
        ids = torch.arange(rows, dtype=torch.int64) * 7919 % vocab
        self.ids = ids.to(device)
        self.group = shards.Group(None, None, None, "ranks", self.logits)
        self.unused = torch.empty(rows, device=device)
        self.call = self.group.kernels.row_forward_call(
            self.logits, self.ids, None, None, _options(),
            (self.unused, None, None, None, None), None,
        )
        (size, _) = self.group._sizes("row", self.call)
        assert size >= HEADER_BYTES + rows * FLOATS * 4
        self.partials = torch.empty(size, dtype=torch.uint8, device=device)
        records = self.partials[HEADER_BYTES : HEADER_BYTES + rows * FLOATS * 4]
        self.records = records.view(torch.float32).view(rows, FLOATS)

    def statistics(self):
        self.group._ask(
            "row_statistics", self.call, self.group.place,
            shards._packed(self.partials), self.group.kernels.stream(),
        )

    def ours(self):
        return vocab_parallel.logprobs(self.logits, self.ids)

    def three(self):
        self.statistics()
        mine, total, picked = self.records.unbind(1)
        maximum = mine.clone()
        distributed.all_reduce(maximum, distributed.ReduceOp.MAX)
        total = total * torch.exp(mine - maximum)
        distributed.all_reduce(total)
        picked = picked.clone()
        distributed.all_reduce(picked)
        return picked - maximum - torch.log(total)

    def right(self):
        """Float64, for few rows: every rank's logits are gathered."""
        mine = self.logits.float()
        parts = [torch.empty_like(mine) for _ in range(self.ranks)]
        distributed.all_gather(parts, mine)
        log_p = torch.log_softmax(torch.cat(parts, 1).double(), 1)
        return log_p.gather(1, self.ids[:, None])[:, 0]


def _options():
    return RowOptions(1, 1.0, 0.0, 0, 0)


def check(rank, ranks, device):
    scene = Scene(rank, ranks, 33, 96 * ranks, device)
    right = scene.right()
    for name in ("ours", "three"):
        found = getattr(scene, name)().double()
        worst = (found - right).abs().max().item()
        assert worst < 1e-5, f"{name}: {worst} from the right values"


class Repeated:
    """`work` several times, as a CUDA graph, or as it is on a CPU."""

    def __init__(self, work, calls, device):
        self.calls = calls
        self.graph = None
        for _ in range(2):
            self.kept = work()
        if device.type == "cpu":
            self.run = lambda: [work() for _ in range(calls)]
            return
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # Whoever else asks the driver something meanwhile (a watchdog) may.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            for _ in range(calls):
                self.kept = work()
        self.run = self.graph.replay

    def microseconds(self):
        if self.graph is None:
            begin = time.perf_counter()
            self.run()
            return (time.perf_counter() - begin) * 1e6 / self.calls
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / self.calls


def measure(scene, rows):
    """Rounds in turn, so that a change of clock meets all alike."""
    calls = 4 if rows >= 30000 else 10 if rows >= 8000 else 40
    if scene.device.type == "cpu":
        calls = 2
    names = ("statistics", "ours", "three")
    works = {n: Repeated(getattr(scene, n), calls, scene.device) for n in names}
    times = {name: [] for name in names}
    for _ in range(ROUNDS + 1):
        for name, work in works.items():
            distributed.barrier()
            times[name].append(work.microseconds())
    medians = [statistics.median(times[name][1:]) for name in names]
    slowest = torch.tensor(medians, device=scene.device)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    if scene.device.type == "cuda":
        torch.cuda.synchronize()
    local, ours, three = slowest.tolist()
    return {
        "rows": rows,
        "statistics_us": round(local, 2),
        "one_collective_us": round(ours, 2),
        "three_collectives_us": round(three, 2),
        "three_over_one": round(three / ours, 4),
    }


def run(flags):
    device = torch.device(flags.device)
    if flags.device == "cuda":
        device = torch.device("cuda", flags.rank)
        torch.cuda.set_device(device)
    distributed.init_process_group(
        "nccl" if flags.device == "cuda" else "gloo",
        init_method=f"file://{flags.meeting}",
        rank=flags.rank,
        world_size=flags.ranks,
    )
    report = {
        "ranks": flags.ranks,
        "device": torch.cuda.get_device_name(device)
        if flags.device == "cuda"
        else "cpu",
        "torch": torch.__version__,
        "vocab": flags.vocab,
        "graphs": flags.device == "cuda",
        "rows": [],
    }
    with torch.no_grad():
        check(flags.rank, flags.ranks, device)
        for rows in flags.rows:
            scene = Scene(flags.rank, flags.ranks, rows, flags.vocab, device)
            found = measure(scene, rows)
            report["rows"].append(found)
            if flags.rank == 0:
                print(
                    f"{flags.ranks} ranks, {rows} rows, vocab {flags.vocab}: "
                    f"statistics {found['statistics_us']} us, one collective "
                    f"{found['one_collective_us']}, three by torch.distributed "
                    f"{found['three_collectives_us']} "
                    f"({found['three_over_one']}x)",
                    flush=True,
                )
    if flags.rank == 0 and flags.json:
        with open(flags.json, "w") as file:
            json.dump(report, file, indent=1)
    distributed.barrier()
    distributed.destroy_process_group()


def spawn(ranks):
    """A process for each rank; the first failure ends the others."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = ["--meeting", os.path.join(folder, "meeting")]
        started = [
            subprocess.Popen(
                [sys.executable, "-B", *sys.argv, *meeting, "--rank", str(rank)]
            )
            for rank in range(ranks)
        ]
        try:
            while any(one.poll() is None for one in started):
                if any(one.poll() not in (None, 0) for one in started):
                    return 1
                time.sleep(0.1)
        finally:
            for one in started:
                one.kill()
                one.wait()
    return 1 if any(one.returncode for one in started) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--meeting", help="a file that does not exist yet")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--vocab", type=int, default=151936)
    parser.add_argument(
        "--rows",
        default=[1024, 8192, 32768],
        type=lambda text: [int(part) for part in text.split(",")],
    )
    parser.add_argument("--json", help="where rank 0 writes its report")
    flags = parser.parse_args()
    if flags.vocab % flags.ranks:
        parser.error("--vocab: is no multiple of --ranks")
    if flags.rank is None:
        return spawn(flags.ranks)
    return run(flags)


if __name__ == "__main__":
    sys.exit(main())
