# Reads ctest's JUnit report: prints failures with their output, skipped tests
# with their reasons, and last the line that counts. Exit code 1 when a test
# failed or none ran.
import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

KINDS = {"run": "passed", "fail": "failed"}  # anything else did not run


def output(case):
    text = case.findtext("system-out") or ""
    return text.replace("\r", "").strip()


def skip_reason(case):
    """What GTEST_SKIP() said, or why ctest itself did not run the test."""
    said = re.search(r": Skipped\n(.*?)\n\s*(?:\n|\[|$)", output(case), re.S)
    if said and said.group(1).strip():
        return " ".join(said.group(1).split())
    skipped = case.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    return message or case.get("status", "not run")


def is_skip(case):
    """ctest marks a test whose fixture failed or program is missing as not
    run: that is a failure, not a skip."""
    if case.get("status") == "disabled":
        return True
    skipped = case.find("skipped")
    return skipped is not None and "SKIP" in skipped.get("message", "")


def kind_of(case):
    kind = KINDS.get(case.get("status"))
    if kind:
        return kind
    return "skipped" if is_skip(case) else "failed"


def main(path):
    by_kind = collections.defaultdict(list)
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        by_kind[kind_of(case)].append(case)
    reasons = collections.defaultdict(list)
    for case in by_kind["skipped"]:
        reasons[skip_reason(case)].append(case.get("name"))
    for reason, names in sorted(reasons.items()):
        print(f"skipped: {reason}")
        for name in sorted(names):
            print(f"    {name}")
    for case in by_kind["failed"]:
        seconds = float(case.get("time") or 0)
        said = output(case) or "(it printed nothing)"
        print(f"\nFAILED: {case.get('name')}, {seconds:.1f} s\n{said}")
    passed, failed, skipped = (
        len(by_kind[kind]) for kind in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
