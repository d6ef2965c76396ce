"""Launch configurations measured ahead of training, by the package's command: the
library itself holds no tuner."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings

from . import _arguments, _command, _prepare, _runtime, _structs
from ._library import Error

_WRONG_USAGE = 2
_SAID = "logpjit: error: "

# What `configure` chose, as the command's environment.
_VARIABLES = {
    "driver_library": "LOGPJIT_DRIVER",
    "nvrtc_library": "LOGPJIT_NVRTC",
    "host_compiler": "LOGPJIT_HOST_COMPILER",
    "cpu_threads": "LOGPJIT_CPU_THREADS",
}


def _listed(values, name, check):
    """One value or several, as the command's lists."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        values = (values,)
    return ",".join(str(check(value, name)) for value in values)


def _text(value, name):
    if not isinstance(value, str):
        raise TypeError(f"{name}: {type(value).__name__} is not a str")
    return value


def _shapes(vocab, dtype, model, ops, rows, tp, misses):
    """The flags that say what is tuned."""
    if sum(given is not None for given in (vocab, model, misses)) != 1:
        raise TypeError("vocab, model, misses: give one of them")
    if misses is not None:
        return ["--from", os.fspath(misses)]
    flags = ["--dtypes", _listed(dtype, "dtype", _prepare.dtype_name)]
    flags += ["--tp", _listed(tp, "tp", _arguments.integer)]
    if vocab is not None:
        flags += ["--vocab", _listed(vocab, "vocab", _arguments.integer)]
    else:
        flags += ["--model", _listed(model, "model", _text)]
    if rows is not None:
        flags += ["--rows", _listed(rows, "rows", _arguments.integer)]
    if ops is not None:
        flags += ["--ops", ",".join(_prepare.kernels_of(ops))]
    return flags


def _environment():
    found = dict(os.environ)
    for name, variable in _VARIABLES.items():
        value = _runtime.setting(name)
        if value is not None:
            found[variable] = str(value)
    directory = _runtime.setting("cache_directory")
    if directory == "":
        raise ValueError(
            "cache_directory: kernels are kept in memory only, and so would be "
            "what is measured: configure one"
        )
    if directory is not None:
        found["LOGPJIT_CACHE_DIR"] = os.fspath(directory)
    return found


class _Messages(threading.Thread):
    """Passes the command's progress on to sys.stderr and keeps its errors."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream = stream
        self._errors = []

    def run(self):
        for line in self._stream:
            if line.startswith(_SAID) or self._errors:
                self._errors.append(line.removeprefix(_SAID))
            else:
                sys.stderr.write(line)

    def errors(self):
        self.join()
        return "".join(self._errors).strip() or "it said nothing"


def _run(words, environment):
    """(exit code, standard output, error messages). An interrupt lets the
    command keep what it has."""
    process = subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches it once, from here
    )
    messages = _Messages(process.stderr)
    messages.start()
    try:
        made = process.stdout.read()
        code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    return code, made, messages.errors()


def pretune(
    vocab=None,
    dtype="bf16",
    *,
    model=None,
    misses=None,
    ops=None,
    rows=None,
    tp=1,
    device="cuda",
    budget=180.0,
    force=False,
    report=None,
):
    """Measures launch configurations on the device and keeps the fastest beside
    the cache, for every program that uses that cache and starts from now on.
    Changes time, never a bit. Runs the command `logpjit pretune`, whose progress
    goes to sys.stderr; returns its report as a dict. Call it before the first
    operation: runtimes in use keep what they have.

    vocab: lengths of rows; or model: names such as "qwen2.5" or "llama3"; or
    misses: a file that LOGPJIT_RECORD_MISSES named. dtype: of the logits. ops: as
    in `prepare`; all that trainers run. rows: row counts; 1 to 32768. tp:
    tensor-parallel sizes that share a vocabulary. budget: seconds for
    everything; what it leaves out is "skipped" in the report, and a second call
    goes on. force: measure again what is tuned. report: a file for the report,
    and a page for a browser beside it.
    """
    kind, index = _runtime.parse_device(device)
    name = "cpu" if kind == _structs.CPU else f"cuda:{index}"
    flags = _shapes(vocab, dtype, model, ops, rows, tp, misses)
    flags += ["--budget", repr(_arguments.number(budget, "budget"))]
    flags += ["--force"] if force else []
    flags += [] if report is None else ["--report", os.fspath(report)]
    words = [_command.path(), "pretune", "--json", "--device", name, *flags]
    code, made, errors = _run(words, _environment())
    if code == _WRONG_USAGE:
        raise ValueError(f"pretune: {errors.removeprefix('--')}")
    if code != 0:
        raise Error(f"pretune: {errors}")
    if name in _runtime.opened():
        warnings.warn(
            f"logpjit.pretune: the runtime of {name} is in use and keeps the "
            "configurations it has",
            stacklevel=2,
        )
    return json.loads(made)
