"""The `logpjit` program that comes with the package."""

import os
import sys

from ._library import Error


def path():
    """$LOGPJIT_COMMAND, else the one in this package."""
    beside = os.path.join(os.path.dirname(__file__), "bin", "logpjit")
    found = os.environ.get("LOGPJIT_COMMAND") or beside
    if os.access(found, os.X_OK):
        return found
    raise Error(
        f"the command {found!r} cannot be run: install the package again, or set "
        "LOGPJIT_COMMAND to a logpjit program"
    )


def main():
    """Becomes the program."""
    program = path()
    os.execv(program, [program, *sys.argv[1:]])
