"""Activation checkpointing: every layer's forward pass runs again inside of the backward pass."""

import os
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(8)


class Encoder(nn.Module):
    def __init__(self, layers=4, width=32):
        super().__init__()
        self.embed = nn.Embedding(64, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, dropout=0.1) for _ in range(layers)
        )
        self.out = nn.Linear(width, 64)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.out(x)


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
begins = []
for _ in range(40):
    begins.append(time.monotonic_ns())
    ids = torch.randint(0, 64, (4, 16))
    masked = ids.masked_fill(torch.rand(4, 16) < 0.15, 0)
    logits = model(masked)
    loss = nn.functional.cross_entropy(logits.reshape(-1, 64), ids.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
