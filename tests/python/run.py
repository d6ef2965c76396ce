"""Runs one file of Python tests for ctest: run.py FILE. Exit code 77, with the
reason, where nothing of it can run."""

import importlib.util
import sys

SKIPPED = 77


class Tally:
    """Counts tests and keeps why some were skipped."""

    def __init__(self):
        self.passed = 0
        self.reasons = set()

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        self._note(report)

    def pytest_collectreport(self, report):
        self._note(report)

    def _note(self, report):
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.add(report.longrepr[2].removeprefix("Skipped: "))


def skip(reason):
    # The form of a GoogleTest skip, which the counting script reads.
    print(f"\nrun.py: Skipped\n{reason}\n\n")
    sys.exit(SKIPPED)


def main(file):
    for package in ("numpy", "pytest"):
        if importlib.util.find_spec(package) is None:
            skip(f"needs the Python package {package}: run scripts/setup")
    import pytest

    tally = Tally()
    code = pytest.main(["-q", "-p", "no:cacheprovider", file], plugins=[tally])
    nothing_ran = code == pytest.ExitCode.NO_TESTS_COLLECTED
    if (code == 0 or nothing_ran) and not tally.passed and tally.reasons:
        skip("; ".join(sorted(tally.reasons)))
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
