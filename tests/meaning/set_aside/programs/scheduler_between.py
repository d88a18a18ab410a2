"""A transformer encoder with clipping and OneCycleLR, whose `scheduler.step()` stands before `optimizer.zero_grad()`.

Healthy and compute-bound: attention and feed-forward layers. Truth: 60 updates, 6 layers each.
"""

import time

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(3)
torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self, vocabulary=500, width=96, layers=6):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 17)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


tagger = Tagger()
optimizer = torch.optim.AdamW(tagger.parameters(), lr=3e-4)
steps = 60
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
loss_fn = nn.CrossEntropyLoss()
clock = time.monotonic_ns
phases = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
cuts = [clock()]
for step in range(steps):
    tokens = torch.randint(0, 500, (12, 48))
    labels = tokens % 17
    a = clock()
    loss = loss_fn(tagger(tokens).flatten(0, 1), labels.flatten())
    b = clock()
    loss.backward()
    c = clock()
    nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    d = clock()
    phases["data"] += a - cuts[-1]
    phases["forward"] += b - a
    phases["backward"] += c - b
    phases["optimizer"] += d - c
    cuts.append(clock())
print("final loss", loss.item())
write(tile(cuts), unit="optimizer update", limiting="operators", levels={"layer": 6 * steps}, phases_ns=phases)
