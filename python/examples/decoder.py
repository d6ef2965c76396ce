"""A small decoder of Qwen's kind, with random weights: enough to train."""

import dataclasses

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Config:
    vocab: int = 151936
    width: int = 256
    layers: int = 4
    heads: int = 4
    inner: int = 768
    theta: float = 1e6


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.theta = config.theta
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def rotate(self, x):
        half = x.shape[-1] // 2
        steps = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
        scale = torch.arange(half, device=x.device, dtype=torch.float32) / half
        angle = steps[:, None] * self.theta**-scale
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        made = functional.scaled_dot_product_attention(
            self.rotate(q), self.rotate(k), v, is_causal=True
        )
        return self.out(made.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention = nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.before_inner = nn.RMSNorm(config.width)
        self.gate_up = nn.Linear(config.width, 2 * config.inner, bias=False)
        self.down = nn.Linear(config.inner, config.width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        gate, up = self.gate_up(self.before_inner(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Decoder(nn.Module):
    """Token ids [B, S] to logits [B, S, V]; embedding and head are tied."""

    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab, config.width)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.embedding.weight)
