"""Trains a small decoder by a GRPO-like step, with torch's own log-probs and
with logpjit's: the same losses, in other time and memory.

    python grpo.py --json result.json        # on a GPU: Qwen's vocabulary
    python grpo.py --device cpu --vocab 512 --steps 3 --length 16 --dtype fp32
    python plot.py result.json result.svg

Weights and optimizer are fp32 and the decoder runs in bf16 (autocast), as
trainers have it. A third run takes the log-probs in float64: how far two runs may
part by rounding alone is how far it is from torch's own fp32 ones.

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
from figures import difference, summary

import logpjit

class Eager:
    """As trainers write it: bf16 logits are widened first."""

    def __init__(self, wide):
        self.wide = wide

    def _log_p(self, logits):
        return torch.log_softmax(logits, -1, dtype=self.wide)

    def logprobs(self, logits, ids):
        log_p = self._log_p(logits)
        return log_p.gather(-1, ids[..., None])[..., 0].float()

    def logprobs_and_entropy(self, logits, ids):
        log_p = self._log_p(logits)
        entropy = -(log_p.exp() * log_p).sum(-1)
        logp = log_p.gather(-1, ids[..., None])[..., 0]
        return logp.float(), entropy.float()

    def kl(self, student, teacher, direction):
        assert direction == "reverse"
        a, b = self._log_p(student), self._log_p(teacher)
        return (a.exp() * (a - b)).sum(-1).float()


METHODS = {
    "eager": Eager(torch.float32),
    "logpjit": logpjit,
    "float64": Eager(torch.float64),
}


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


def logits_of(decoder, tokens, options):
    """Of every token that has a next one."""
    kind = torch.device(options.device).type
    low = options.dtype == "bf16"
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=low):
        return decoder(tokens)[:, :-1]


def loss_of(policy, reference, tokens, advantage, old, method, options):
    """Clipped policy gradient with entropy bonus and divergence."""
    logits = logits_of(policy, tokens, options)
    ids = tokens[:, 1:]
    logp, entropy = method.logprobs_and_entropy(logits, ids)
    ratio = (logp - old).exp()
    gain = torch.minimum(
        ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
    )
    with torch.no_grad():
        teacher = logits_of(reference, tokens, options)
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
    policy = Decoder(config).to(options.device)
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=options.rate)
    tokens, advantage = make_batch(options)
    clock = Clock(options.device)
    losses, times, peaks = [], [], []
    for _ in range(options.steps):
        clock.start()
        with torch.no_grad():
            logits = logits_of(policy, tokens, options)
            old = method.logprobs(logits, tokens[:, 1:])
            del logits
        for _ in range(options.updates):
            loss = loss_of(
                policy, reference, tokens, advantage, old, method, options
            )
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
    add("--dtype", choices=("bf16", "fp32"), default="bf16")
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
    print("largest difference of a loss")
    for one, other in (("eager", "logpjit"), ("eager", "float64")):
        apart = difference(found[one]["loss"], found[other]["loss"])
        print(f"    {one} and {other}: {apart:.2e}")
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
