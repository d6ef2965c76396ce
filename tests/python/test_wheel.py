"""The wheel, made of a finished build: what it holds, and the README's first
example in an environment of its own, with NumPy and no torch."""

import os
import pathlib
import subprocess
import sys
import zipfile

import numpy
import pytest

import logpjit
from logpjit import _library

PYTHON = pathlib.Path(__file__).parents[2] / "python"
OFFLINE = ("No matching distribution", "Could not fetch", "connection")


def run(*words, **options):
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=280,
        **options,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    build = pathlib.Path(_library.path()).resolve().parents[1]
    if not (build / "cli" / "logpjit").exists():
        pytest.skip(f"no finished build of the library and the command: {build}")
    folder = tmp_path_factory.mktemp("wheel")
    done = run(
        *(sys.executable, "-m", "pip", "wheel", PYTHON, "--no-deps"),
        *("--wheel-dir", folder, "--config-settings"),
        f"cmake.define.LOGPJIT_PREBUILT={build}",
        cwd=folder,
    )
    if any(text in done.stderr for text in OFFLINE):
        pytest.skip("the build's requirements cannot be fetched here")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_it_is_one_for_the_platform_with_all_that_is_needed(wheel):
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version) == ("logpjit", logpjit.__version__)
    assert (python, abi) == ("py3", "none") and platform.startswith("linux")
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
        size = sum(entry.file_size for entry in opened.infolist())
    sources = PYTHON.glob("logpjit/**/*.py")
    wanted = {str(source.relative_to(PYTHON)) for source in sources}
    wanted |= {"logpjit/liblogpjit.so", "logpjit/bin/logpjit"}
    about = {entry for entry in inside if ".dist-info/" in entry}
    assert inside - about == wanted
    assert any(entry.endswith("LICENSE") for entry in about)
    assert size < 64 * 2**20


def test_the_readmes_first_example_in_a_clean_environment(wheel, tmp_path):
    done = run(sys.executable, "-m", "venv", tmp_path / "clean")
    assert done.returncode == 0, done.stderr
    here = tmp_path / "clean" / "bin"
    done = run(
        *(here / "python", "-m", "pip", "install", "--no-deps", wheel),
    )
    assert done.returncode == 0, done.stderr
    # NumPy is the one of this interpreter, alone.
    beside = tmp_path / "numpy"
    beside.mkdir()
    place = pathlib.Path(numpy.__file__).parent
    for folder in place.parent.glob("numpy*"):
        (beside / folder.name).symlink_to(folder)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(beside),
        "LOGPJIT_CACHE_DIR": str(tmp_path / "cache"),
    }
    code = (PYTHON / "README.md").read_text(encoding="utf-8")
    code = code.split("```python\n")[1].split("```")[0]
    done = run(here / "python", "-c", code, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = code[code.index("# [") + 2 :].strip()
    numpy.testing.assert_allclose(
        [float(word) for word in done.stdout.strip("[]\n").split()],
        [float(word) for word in said.strip("[]").split()],
        atol=2e-7,
    )
    done = run(here / "logpjit", "--version", env=environment, cwd=tmp_path)
    assert done.stdout.strip() == logpjit.__version__
    code = "import logpjit; print(logpjit.doctor(devices=['cpu'])['library'])"
    done = run(here / "python", "-c", code, env=environment, cwd=tmp_path)
    assert str(tmp_path / "clean") in done.stdout
