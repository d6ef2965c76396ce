"""Starts the vocab_parallel program with processes as ranks, on any hosts.

    launch_ranks.py --hosts node1:8,node2:8 PROGRAM [ARGUMENT...]

A host is NAME:GPUS; "localhost" is started directly, others through ssh with
the same path. Rank 0 prints NCCL's id, which the others get as an argument; its
report is this program's output. The exit status is 0 when every rank's is.
"""

import argparse
import shlex
import subprocess
import sys


def parse_hosts(text):
    """[("node1", 0), ("node1", 1), ...]: host and GPU of each rank."""
    ranks = []
    for part in text.split(","):
        host, _, gpus = part.partition(":")
        if not host or (gpus and not gpus.isdigit()):
            raise SystemExit(f"--hosts: '{part}' is not HOST or HOST:GPUS")
        ranks += [(host, gpu) for gpu in range(int(gpus or 1))]
    return ranks


def command_of(host, words):
    if host == "localhost":
        return words
    return ["ssh", "-o", "BatchMode=yes", host, shlex.join(words)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    flags = parser.parse_args()
    ranks = parse_hosts(flags.hosts)

    def start(rank, extra, output):
        host, gpu = ranks[rank]
        words = [flags.program, "--ranks", str(len(ranks)), "--rank", str(rank),
                 "--device", str(gpu), *extra, *flags.arguments]
        return subprocess.Popen(command_of(host, words), stdout=output,
                                text=True)

    processes = [start(0, [], subprocess.PIPE)]
    identity = processes[0].stdout.readline().strip()
    if len(identity) != 256:
        raise SystemExit(f"rank 0 did not print NCCL's id but '{identity}'")
    for rank in range(1, len(ranks)):
        processes.append(start(rank, ["--id", identity], subprocess.DEVNULL))
    try:
        report, _ = processes[0].communicate(timeout=flags.timeout)
        codes = [p.wait(timeout=flags.timeout) for p in processes]
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
        raise SystemExit(f"not done after {flags.timeout} s")
    sys.stdout.write(report)
    return 0 if not any(codes) else 1


if __name__ == "__main__":
    sys.exit(main())
