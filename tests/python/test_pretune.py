"""logpjit.pretune: the packaged command, its report, its failures."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy
import pytest

import logpjit
from logpjit import _command

SMALL = {"dtype": "bf16", "rows": 4, "ops": "lse", "device": "cpu"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    try:
        _command.path()
    except logpjit.Error as reason:
        pytest.skip(f"there is no command to run: {reason}")
    monkeypatch.setenv("LOGPJIT_CACHE_DIR", str(tmp_path / "cache"))


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240
    )


def test_what_was_measured_serves_later_programs(tmp_path):
    file = tmp_path / "report.json"
    code = (
        "import json, logpjit\n"
        f"made = logpjit.pretune(128, report={str(file)!r}, **{SMALL!r})\n"
        "print(json.dumps(made))\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    ops = [entry["op"] for entry in made["entries"]]
    assert ops == ["lse"] and made["kind"] == "pretune"
    assert "] lse bf16 4 x 128" in done.stderr, "progress passes through"
    assert json.loads(file.read_text()) == made
    assert (tmp_path / "report.html").exists()
    assert list((tmp_path / "cache").rglob("configs.jsonl"))

    # A later program finds it: nothing is left to measure.
    again = json.loads(run_python(code).stdout)
    assert [entry["status"] for entry in made["entries"]] == ["tuned"]
    assert [entry["status"] for entry in again["entries"]] == ["stored"]
    found = run_python(
        "import logpjit\n"
        "print(logpjit.launch_config('lse', 128, 'bf16', 4, device='cpu'))\n"
    )
    assert found.stdout.strip() == made["entries"][0]["config"]


def test_configure_decides_where_it_is_kept(tmp_path):
    code = (
        "import logpjit\n"
        f"logpjit.configure(cache_directory={str(tmp_path / 'own')!r})\n"
        f"logpjit.pretune(128, **{SMALL!r})\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "own").rglob("configs.jsonl"))
    done = run_python(
        "import logpjit\n"
        "logpjit.configure(cache_directory='')\n"
        f"logpjit.pretune(128, **{SMALL!r})\n"
    )
    assert "ValueError: cache_directory: " in done.stderr


def test_recorded_calls_can_be_tuned(tmp_path):
    file = tmp_path / "misses"
    environment = {**os.environ, "LOGPJIT_RECORD_MISSES": str(file)}
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy, logpjit\n"
            "x = numpy.zeros((2, 160), numpy.float32)\n"
            "logpjit.row_values(x, outputs='lse')\n",
        ],
        env=environment,
        check=True,
        timeout=120,
    )
    made = logpjit.pretune(misses=file, device="cpu")
    assert [entry["vocab"] for entry in made["entries"]] == [160]


@pytest.mark.parametrize(
    ("kind", "text", "options"),
    [
        (TypeError, "vocab, model, misses", {}),
        (TypeError, "vocab, model, misses", {"vocab": 8, "model": "llama3"}),
        (TypeError, "vocab: str", {"vocab": "128"}),
        (TypeError, "rows: float", {"vocab": 8, "rows": 1.5}),
        (TypeError, "dtype", {"vocab": 8, "dtype": "int64"}),
        (TypeError, "budget", {"vocab": 8, "budget": "long"}),
        (ValueError, "budget: must be above 0", {"vocab": 8, "budget": 0}),
        (ValueError, "model: 'quen2.5'.*qwen2.5", {"model": "quen2.5"}),
        (ValueError, "op: 'lgop'", {"vocab": 8, "ops": "lgop"}),
        (ValueError, "device: 'toaster'", {"vocab": 8, "device": "toaster"}),
        (logpjit.Error, "no/such", {"misses": "/no/such"}),
    ],
)
def test_refusals(kind, text, options):
    with pytest.raises(kind, match=text):
        logpjit.pretune(**{"device": "cpu", **options})


def test_what_the_budget_leaves_out_is_reported():
    made = logpjit.pretune((128, 256), device="cpu", budget=1e-3)
    assert {entry["vocab"] for entry in made["entries"]} == {128, 256}
    for entry in made["entries"]:
        assert entry["status"] == "skipped" and "budget" in entry["reason"]


def test_a_missing_command_is_named(monkeypatch):
    monkeypatch.setenv("LOGPJIT_COMMAND", "/no/such/program")
    with pytest.raises(logpjit.Error, match="/no/such/program"):
        logpjit.pretune(128, device="cpu")


def test_an_interrupt_ends_the_command_too():
    code = "import logpjit\nlogpjit.pretune(1000, device='cpu', budget=100.0)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr.readline().startswith("[1/")
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert "KeyboardInterrupt" in said
    assert time.monotonic() - begin < 50


def test_a_runtime_in_use_is_warned_of():
    logpjit.entropy(numpy.zeros((1, 4), numpy.float32))
    with pytest.warns(UserWarning, match="cpu is in use"):
        logpjit.pretune(128, budget=1e-3, **SMALL)
