"""Truncated backpropagation through time: a long signal is read in chunks, the hidden state is carried and detached."""

import os
import time

import torch
from torch import nn

torch.manual_seed(15)
CHUNK = 16
signal = torch.sin(torch.arange(0, 1200) * 0.1) * torch.cos(torch.arange(0, 1200) * 0.03)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 20)
        self.head = nn.Linear(20, 1)

    def forward(self, x, state):
        y, state = self.gru(x, state)
        return self.head(y), state


net = Forecaster()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
begins = []
for epoch in range(2):
    state = None
    for at in range(0, len(signal) - CHUNK - 1, CHUNK):
        begins.append(time.monotonic_ns())
        x = signal[at : at + CHUNK].view(CHUNK, 1, 1)
        y = signal[at + 1 : at + CHUNK + 1].view(CHUNK, 1, 1)
        if state is not None:
            state = state.detach()
        predicted, state = net(x, state)
        loss = nn.functional.mse_loss(predicted, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.5f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
