"""A character model with `nn.LSTMCell` in a Python loop over time, as older tutorials write it.

Compute-bound: the cell is wide enough that its matrix products dominate. Truth: 30 updates of 32 time steps each, which
are an inner level. Healthy.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write


class CharModel(nn.Module):
    def __init__(self, vocab=64, hidden=320):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, 64)
        self.cell = nn.LSTMCell(64, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, text):
        h = c = torch.zeros(text.shape[0], self.hidden)
        logits = []
        for t in range(text.shape[1]):
            h, c = self.cell(self.embed(text[:, t]), (h, c))
            logits.append(self.out(h))
        return torch.stack(logits, 1)


def main(updates=30, seq_len=32):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = CharModel()
    optim = torch.optim.Adam(model.parameters(), lr=2e-3)
    text = torch.randint(0, 64, (64, updates * seq_len + 1))
    fw = bw = up = 0
    cuts = [monotonic_ns()]
    for i in range(updates):
        inp = text[:, i * seq_len : (i + 1) * seq_len]
        target = text[:, i * seq_len + 1 : (i + 1) * seq_len + 1]
        a = monotonic_ns()
        loss = nn.functional.cross_entropy(model(inp).reshape(-1, 64), target.reshape(-1))
        b = monotonic_ns()
        optim.zero_grad()
        c = monotonic_ns()
        loss.backward()
        d = monotonic_ns()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optim.step()
        e = monotonic_ns()
        fw, bw, up = fw + b - a, bw + d - c, up + c - b + e - d
        cuts.append(monotonic_ns())
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="operators",
        levels={"time step": updates * seq_len},
        phases_ns={"forward": fw, "backward": bw, "optimizer": up},
    )


main()
