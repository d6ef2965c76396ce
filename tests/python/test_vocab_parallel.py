"""The vocabulary over a process group: gloo, one process a rank, CPU device."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import logpjit  # noqa: E402

HERE = os.path.dirname(__file__)


def run_ranks(program, ranks, *arguments, timeout=200):
    """Starts `ranks` processes of a program of this folder; their outputs."""
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [sys.executable, "-B", os.path.join(HERE, program)]
                + [os.path.join(folder, "meeting"), str(rank), str(ranks)]
                + list(arguments),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(ranks)
        ]
        try:
            said = [one.communicate(timeout=timeout)[0] for one in started]
        finally:
            for one in started:
                one.kill()
    for one, text in zip(started, said):
        assert one.returncode == 0, text
    return said


@pytest.mark.parametrize(
    "name", ["even", "uneven", "empty", "masked", "many_ids", "segments"]
)
def test_values_and_gradients(name):
    said = run_ranks("vocab_parallel_ranks.py", 2, name)
    digests = {text.split("digest ")[1].split()[0] for text in said}
    assert len(digests) == 1, "ranks differ in bits"


def test_refusals_and_disagreement():
    run_ranks("vocab_parallel_ranks.py", 2, "refusals")


def test_without_a_process_group():
    with pytest.raises(RuntimeError, match="group: torch.distributed"):
        logpjit.vocab_parallel.entropy(torch.zeros(2, 8))


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.device_count() < 2,
    reason="needs two GPUs",
)
def test_over_nccl():
    run_ranks("vocab_parallel_ranks.py", 2, "even", "cuda")


def test_three_collectives_give_the_same():
    """The scheme that speed is compared with is right, and runs."""
    program = os.path.join(HERE, "three_collectives.py")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        subprocess.run(
            [sys.executable, "-B", program, "--ranks", "2", "--device", "cpu"]
            + ["--vocab", "600", "--rows", "8", "--json", report],
            check=True,
            timeout=200,
        )
        with open(report) as file:
            (row,) = json.load(file)["rows"]
    assert row["one_collective_us"] > 0 and row["three_collectives_us"] > 0
