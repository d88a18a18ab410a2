"""A mixture of experts: each token goes to two of four experts, so which of them run, and on how much, changes."""

import os
import time

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Mixture(nn.Module):
    def __init__(self, width, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            if len(token) == 0:
                continue
            out = out.index_add(0, token, weights[token, slot, None] * expert(x[token]))
        return out


class Model(nn.Module):
    def __init__(self, width=24, blocks=2):
        super().__init__()
        self.blocks = nn.ModuleList(Mixture(width) for _ in range(blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(blocks))

    def forward(self, x):
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + block(norm(x))
        return x


def main():
    torch.manual_seed(37)
    model, target = Model(), nn.Linear(24, 24).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begins = []
    for step in range(60):
        begins.append(time.monotonic_ns())
        tokens = torch.randn(12, 24)
        loss = (model(tokens) - target(tokens).relu()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
