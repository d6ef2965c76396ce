"""Trains a small decoder by a GRPO-like step, with torch's own log-probs and
with logpjit's: the same losses, in other time and memory.

    python grpo.py --json result.json        # on a GPU: Qwen's vocabulary
    python grpo.py --device cpu --vocab 512 --steps 3 --length 16 --dtype fp32
    python plot.py result.json result.svg

A step takes, of each sampled sequence, the log-probabilities under the policy as
it was, under a frozen reference and under the policy now, an entropy bonus, and
the divergence of the policy from the reference.
"""

import argparse
import copy
import json
import time

import torch
from decoder import Config, Decoder
from figures import summary

import logpjit

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class Eager:
    """As trainers write it."""

    @staticmethod
    def logprobs(logits, ids):
        log_p = torch.log_softmax(logits.float(), -1)
        return log_p.gather(-1, ids[..., None])[..., 0]

    @staticmethod
    def logprobs_and_entropy(logits, ids):
        log_p = torch.log_softmax(logits.float(), -1)
        entropy = -(log_p.exp() * log_p).sum(-1)
        return log_p.gather(-1, ids[..., None])[..., 0], entropy

    @staticmethod
    def kl(student, teacher, direction):
        assert direction == "reverse"
        a = torch.log_softmax(student.float(), -1)
        b = torch.log_softmax(teacher.float(), -1)
        return (a.exp() * (a - b)).sum(-1)


METHODS = {"eager": Eager, "logpjit": logpjit}


def make_batch(options):
    """Sequences in groups, each with an advantage within its group: how many
    of its tokens are even, against the group's mean."""
    generator = torch.Generator().manual_seed(1)
    shape = (options.groups * options.group_size, options.length + 1)
    tokens = torch.randint(0, options.vocab, shape, generator=generator)
    reward = (tokens % 2 == 0).float().mean(-1).view(options.groups, -1)
    advantage = reward - reward.mean(-1, keepdim=True)
    advantage = advantage / (reward.std(-1, keepdim=True) + 1e-6)
    return tokens.to(options.device), advantage.view(-1, 1).to(options.device)


def loss_of(policy, reference, tokens, advantage, old, method):
    """Clipped policy gradient with entropy bonus and divergence."""
    logits = policy(tokens)[:, :-1]
    ids = tokens[:, 1:]
    logp, entropy = method.logprobs_and_entropy(logits, ids)
    ratio = (logp - old).exp()
    gain = torch.minimum(
        ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
    )
    with torch.no_grad():
        teacher = reference(tokens)[:, :-1]
    divergence = method.kl(logits, teacher, direction="reverse")
    return (-gain - 1e-3 * entropy + 0.05 * divergence).mean()


class Clock:
    """Milliseconds and peak memory of what runs between start and stop."""

    def __init__(self, device):
        self.on_gpu = torch.device(device).type == "cuda"

    def _wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def start(self):
        self._wait()
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        self.begin = time.perf_counter()

    def stop(self):
        self._wait()
        peak = torch.cuda.max_memory_allocated() if self.on_gpu else 0
        return (time.perf_counter() - self.begin) * 1e3, peak / 2**30


def train(name, options):
    method = METHODS[name]
    torch.manual_seed(0)
    config = Config(options.vocab, options.width, options.layers)
    policy = Decoder(config).to(options.device, DTYPES[options.dtype])
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=options.rate)
    tokens, advantage = make_batch(options)
    clock = Clock(options.device)
    losses, times, peaks = [], [], []
    for _ in range(options.steps):
        clock.start()
        with torch.no_grad():
            old = method.logprobs(policy(tokens)[:, :-1], tokens[:, 1:])
        for _ in range(options.updates):
            loss = loss_of(policy, reference, tokens, advantage, old, method)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        took, peak = clock.stop()
        losses.append(loss.item())
        times.append(took)
        peaks.append(peak)
    return {"loss": losses, "ms": times, "peak_gib": peaks}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", default="cuda")
    add("--dtype", choices=DTYPES, default="bf16")
    add("--vocab", type=int, default=151936)
    add("--width", type=int, default=256)
    add("--layers", type=int, default=4)
    add("--groups", type=int, default=4)
    add("--group-size", type=int, default=4)
    add("--length", type=int, default=512, help="tokens of a sequence")
    add("--steps", type=int, default=20)
    add("--updates", type=int, default=2, help="updates a step")
    add("--rate", type=float, default=3e-4)
    add("--json", help="file for the figures")
    return parser.parse_args()


def main():
    options = parse_arguments()
    found = {name: train(name, options) for name in METHODS}
    print(f"{'':8} {'last loss':>12} {'ms a step':>10} {'peak GiB':>9}")
    for name, one in found.items():
        took, peak = summary(one)
        print(f"{name:8} {one['loss'][-1]:12.6f} {took:10.2f} {peak:9.2f}")
    pairs = zip(found["eager"]["loss"], found["logpjit"]["loss"])
    print(f"largest difference of a loss: {max(abs(a - b) for a, b in pairs):.2e}")
    if options.json:
        if options.device.startswith("cuda"):
            name = torch.cuda.get_device_name()
        else:
            name = "CPU"
        with open(options.json, "w", encoding="utf-8") as file:
            made = {"device": name, "options": vars(options), "found": found}
            json.dump(made, file, indent=1)


if __name__ == "__main__":
    main()
