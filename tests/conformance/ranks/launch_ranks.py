"""Starts the vocab_parallel program with processes as ranks, on any hosts.

    launch_ranks.py --hosts node1:8,node2:8 PROGRAM [ARGUMENT...]

A host is NAME:GPUS; "localhost" is started directly, others through ssh, or
what --shell says, with the same path. Rank 0 prints NCCL's id, which the others
get as an argument; its report is this program's output. The exit status is 0
when every rank's is. When a rank fails, the others have --grace seconds to hear
of it from each other, then they are ended.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time


def parse_hosts(text):
    """[("node1", 0), ("node1", 1), ...]: host and GPU of each rank."""
    ranks = []
    for part in text.split(","):
        host, _, gpus = part.partition(":")
        if not host or (gpus and not gpus.isdigit()):
            raise SystemExit(f"--hosts: '{part}' is not HOST or HOST:GPUS")
        ranks += [(host, gpu) for gpu in range(int(gpus or 1))]
    return ranks


def command_of(host, words, shell):
    """`shell` gets the whole command as one word, as ssh does."""
    if host == "localhost":
        return words
    return shlex.split(shell.format(host=host)) + [shlex.join(words)]


def wait_for_all(processes, timeout, grace):
    """Exit statuses; raises SystemExit when time is over."""
    deadline = time.monotonic() + timeout
    while True:
        codes = [process.poll() for process in processes]
        if None not in codes:
            return codes
        if any(codes) and deadline > time.monotonic() + grace:
            deadline = time.monotonic() + grace
        if time.monotonic() > deadline:
            raise SystemExit(f"not done in time; exit codes by rank: {codes}")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--shell", default="ssh -o BatchMode=yes {host}")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--grace", type=float, default=90)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    flags = parser.parse_args()
    ranks = parse_hosts(flags.hosts)

    def start(rank, extra, output):
        host, gpu = ranks[rank]
        words = [flags.program, "--ranks", str(len(ranks)), "--rank", str(rank),
                 "--device", str(gpu), *extra, *flags.arguments]
        return subprocess.Popen(command_of(host, words, flags.shell),
                                stdin=subprocess.DEVNULL, stdout=output,
                                text=True)

    # A file, not a pipe: nobody reads all of it before the end.
    with tempfile.NamedTemporaryFile() as written, open(written.name) as report:
        processes = [start(0, [], written)]
        try:
            identity = first_line(report, processes[0], flags.timeout)
            for rank in range(1, len(ranks)):
                processes.append(
                    start(rank, ["--id", identity], subprocess.DEVNULL))
            codes = wait_for_all(processes, flags.timeout, flags.grace)
        finally:
            for process in processes:
                process.kill()
        report.seek(0)
        report.readline()
        sys.stdout.write(report.read())
    return 0 if not any(codes) else 1


def first_line(report, process, timeout):
    """NCCL's id, once rank 0 has written it."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        report.seek(0)
        line = report.readline()
        if line.endswith("\n"):
            if len(line) != 257:
                break
            return line.strip()
        if ended:
            break
        time.sleep(0.02)
    raise SystemExit("rank 0 did not print NCCL's id as its first line")


if __name__ == "__main__":
    sys.exit(main())
