"""The package around the operations: import, library, options, reports."""

import json
import os
import subprocess
import sys

import numpy
import pytest

import logpjit


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_readmes_first_example():
    readme = os.path.join(os.path.dirname(logpjit.__file__), "../README.md")
    with open(readme, encoding="utf-8") as file:
        code = file.read().split("```python\n")[1].split("```")[0]
    said = code[code.index("# [") + 2 :].strip()
    right = [float(word) for word in said.strip("[]").split()]
    found = [float(word) for word in run_python(code).strip("[]").split()]
    numpy.testing.assert_allclose(found, right, atol=2e-7)


def test_import_is_quick_and_loads_nothing():
    found = run_python(
        "import sys, time; begin = time.process_time(); import logpjit; "
        "print(time.process_time() - begin, 'torch' in sys.modules, "
        "'numpy' in sys.modules)"
    ).split()
    assert float(found[0]) < 0.05
    assert found[1:] == ["False", "False"]


def test_every_public_name_is_there():
    for name in logpjit.__all__:
        assert getattr(logpjit, name) is not None
    assert set(logpjit.__all__) <= set(dir(logpjit))
    with pytest.raises(AttributeError, match="logprbs"):
        logpjit.logprbs


CALL = """
import numpy, logpjit
try:
    logpjit.entropy(numpy.zeros((1, 4), numpy.float32))
except RuntimeError as reason:
    print(type(reason).__name__, reason)
"""


def test_an_unreadable_library_is_named():
    found = run_python(CALL, LOGPJIT_LIBRARY="/no/such/library.so")
    assert found.startswith("Error") and "/no/such/library.so" in found


def test_another_librarys_file_is_named(tmp_path):
    other = tmp_path / "other.so"
    other.write_text("no library")
    assert str(other) in run_python(CALL, LOGPJIT_LIBRARY=str(other))


def test_a_library_of_another_version_is_refused():
    found = run_python("import logpjit; logpjit.__version__ = '9.1.0'" + CALL)
    assert "9.1.0" in found and logpjit.__version__ in found


def test_failures_of_the_library_are_errors():
    code = (
        "import numpy, logpjit\n"
        "logpjit.configure(cache_directory='', never_compile=True)\n"
    )
    found = run_python(code + CALL)
    assert found.startswith("Error") and "cache" in found


def test_configure_sets_the_cache(tmp_path):
    code = (
        "import json, numpy, logpjit\n"
        f"logpjit.configure(cache_directory={str(tmp_path / 'c')!r})\n"
        "logpjit.entropy(numpy.zeros((1, 300), numpy.float32))\n"
        "print(json.dumps([logpjit.cache_info(), logpjit.counters()]))\n"
    )
    cache, counters = json.loads(run_python(code))
    assert cache["directory"] == str(tmp_path / "c")
    assert cache["entries"] == 1 and cache["bytes"] > 0
    assert counters["compiled"] == 1
    _, counters = json.loads(run_python(code))
    assert counters["compiled"] == 0 and counters["disk_hits"] == 1


def test_configure_refuses_unknown_names():
    with pytest.raises(TypeError, match="cache_dir'"):
        logpjit.configure(cache_dir="/tmp")


def test_prepare_leaves_nothing_to_load():
    logpjit.prepare(
        304, "float32", ops=("logprobs", "kl"), device="cpu", direction="reverse"
    )
    before = logpjit.counters()
    logits = numpy.zeros((4, 304), numpy.float32)
    ids = numpy.zeros(4, numpy.int64)
    logpjit.logprobs(logits, ids)
    logpjit.kl(logits, logits, direction="reverse")
    assert logpjit.counters() == before
    config = logpjit.launch_config("logp", 304, numpy.float32, 4, device="cpu")
    assert "block=" in config


def test_prepare_refusals():
    with pytest.raises(ValueError, match="op: 'lgop'"):
        logpjit.prepare(304, "bf16", ops="lgop", device="cpu")
    with pytest.raises(TypeError, match="dtype: 'int64'"):
        logpjit.prepare(304, "int64", device="cpu")
    with pytest.raises(TypeError, match="rwos"):
        logpjit.prepare(304, "bf16", device="cpu", rwos=3)
    with pytest.raises(ValueError, match="device: 'toaster'"):
        logpjit.prepare(304, "bf16", device="toaster")


def test_doctor_names_library_device_compiler_and_cache():
    found = json.loads(json.dumps(logpjit.doctor(devices=["cpu"])))
    assert found["library"]["version"] == logpjit.__version__
    (cpu,) = found["devices"]
    assert cpu["device"] == "cpu" and cpu["name"]
    assert {"compiler", "cache", "counters"} <= set(cpu)


def test_doctor_tells_of_a_missing_library():
    code = "import json, logpjit; print(json.dumps(logpjit.doctor()))"
    found = json.loads(run_python(code, LOGPJIT_LIBRARY="/no/such.so"))
    assert "/no/such.so" in found["library"]["unavailable"]


def test_log_lines_reach_python_logging():
    code = (
        "import logging, numpy, logpjit\n"
        "logging.basicConfig(format='%(name)s %(message)s')\n"
        "logpjit.configure(cache_directory='/proc/no such place')\n"
        "logpjit.entropy(numpy.zeros((1, 300), numpy.float32))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stderr.startswith("logpjit ")


def test_a_forked_child_works():
    code = (
        "import os, numpy, logpjit\n"
        "logits = numpy.zeros((1, 300), numpy.float32)\n"
        "logpjit.entropy(logits)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(int(abs(logpjit.entropy(logits)[0] - 5.70378) > 1e-4))\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    assert run_python(code) == "0"


def example_losses(tmp_path, *flags):
    """name -> loss of each step."""
    pytest.importorskip("torch", reason="torch is not installed")
    folder = os.path.join(os.path.dirname(logpjit.__file__), "../examples")
    done = subprocess.run(
        [sys.executable, "-B", "grpo.py", "--device=cpu", "--groups=2", *flags]
        + ["--width=32", "--layers=1", f"--json={tmp_path / 'r.json'}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())["found"]
    losses = {name: numpy.array(one["loss"]) for name, one in found.items()}
    assert losses["eager"][0] != losses["eager"][-1], "nothing was trained"
    return losses


def test_the_example_trains_alike_both_ways(tmp_path):
    losses = example_losses(
        tmp_path, "--dtype=fp32", "--vocab=304", "--length=8", "--steps=3"
    )
    numpy.testing.assert_allclose(losses["eager"], losses["logpjit"], atol=1e-5)


def test_the_example_in_bf16_parts_by_rounding_alone(tmp_path):
    """Bf16 training amplifies any rounding: logpjit may part from eager's fp32
    log-probs as far as float64 ones do."""
    losses = example_losses(
        tmp_path, "--dtype=bf16", "--vocab=1000", "--length=8", "--steps=5"
    )
    by_rounding = numpy.abs(losses["eager"] - losses["float64"]).max()
    found = numpy.abs(losses["eager"] - losses["logpjit"]).max()
    assert 0 < found < 3 * by_rounding
    assert by_rounding < 0.05 * numpy.abs(losses["eager"]).max()
