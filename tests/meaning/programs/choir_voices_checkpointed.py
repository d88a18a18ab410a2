"""Separates the voices of a choir in spectrograms: a stack of gated convolutions, three micro-batches to an update,
the update in a function that is called from `train`. Planted: every layer runs under `torch.utils.checkpoint`, as the
recipe for a far bigger model has it, so that the forward pass is computed a second time during backward; memory is
ample here. Truth: 34 updates, 102 micro-batches are the inner level; limited by operators. The gain is measured: the
same micro-batches with and without checkpoints after the loop, the share of which is taken of forward and backward of
the loop.
"""

import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from truth import problem, tile, write

VOICES, TONES, FRAMES, MICRO, UPDATES = 4, 64, 80, 3, 34


class Gate(nn.Module):
    def __init__(self, width, gap):
        super().__init__()
        self.both = nn.Conv1d(width, 2 * width, 5, padding=2 * gap, dilation=gap)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.both(x).chunk(2, dim=1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


class Separator(nn.Module):
    def __init__(self, width=96, sparing=True):
        super().__init__()
        self.sparing = sparing
        self.inwards = nn.Conv1d(TONES, width, 1)
        self.gates = nn.ModuleList(Gate(width, 2**k) for k in range(5))
        self.masks = nn.Conv1d(width, VOICES * TONES, 1)

    def layer(self, gate, x):
        return checkpoint(gate, x, use_reentrant=False) if self.sparing else gate(x)

    def forward(self, mixture):
        x = self.inwards(mixture)
        for gate in self.gates:
            x = self.layer(gate, x)
        masks = self.masks(x).view(len(x), VOICES, TONES, FRAMES).softmax(1)
        return masks * mixture[:, None]


class Choir:
    """Each voice holds tones of its own range for some frames."""

    def __init__(self, songs):
        low = torch.arange(VOICES) * 12
        tones = low[None, :, None] + torch.randint(16, (songs, VOICES, FRAMES // 8 * 6))
        held = tones.repeat_interleave(8, dim=2)
        self.parts = F.one_hot(held, TONES).transpose(2, 3).float()

    def batch(self, size=10):
        songs = torch.randint(len(self.parts), (size,))
        start = int(torch.randint(self.parts.shape[3] - FRAMES, ()))
        parts = self.parts[songs, :, :, start : start + FRAMES] * (0.5 + torch.rand(size, VOICES, 1, 1))
        return parts.sum(1) + 0.05 * torch.rand(size, TONES, FRAMES), parts


def one_update(model, optimizer, choir, spent, begin):
    total = 0.0
    for _ in range(MICRO):
        mixture, parts = choir.batch()
        t0 = time.monotonic_ns()
        loss = F.l1_loss(model(mixture), parts) / MICRO
        t1 = time.monotonic_ns()
        loss.backward()
        t2 = time.monotonic_ns()
        total += loss.detach()
        spent["data"] += t0 - begin
        spent["forward"] += t1 - t0
        spent["backward"] += t2 - t1
        begin = time.monotonic_ns()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    spent["optimizer"] += time.monotonic_ns() - begin
    return total


def train(model, choir, spent):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, UPDATES)
    cuts = [time.monotonic_ns()]
    for number in range(UPDATES):
        loss = one_update(model, optimizer, choir, spent, cuts[-1])
        begin = time.monotonic_ns()
        schedule.step()
        spent["optimizer"] += time.monotonic_ns() - begin
        if number % 10 == 0:
            print(f"update {number}: {loss:.4f}")
        cuts.append(time.monotonic_ns())
    return cuts


def share_saved(model, choir, repeats=12):
    """Of forward and backward, what is saved where nothing is computed twice."""
    taken = {True: [], False: []}
    for _ in range(repeats):
        mixture, parts = choir.batch()
        for sparing in taken:
            model.sparing = sparing
            begin = time.monotonic_ns()
            F.l1_loss(model(mixture), parts).backward()
            taken[sparing].append(time.monotonic_ns() - begin)
    return 1 - statistics.median(taken[False]) / statistics.median(taken[True])


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model, choir = Separator(), Choir(60)
    spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
    cuts = train(model, choir, spent)
    wasted = share_saved(model, choir) * (spent["forward"] + spent["backward"])
    what = "activations are computed twice to spare memory that is not short"
    found = problem(what, "choir_voices_checkpointed.py:Separator.layer", "operators", wasted_ns=int(wasted))
    fields = {"levels": {"micro-batch": UPDATES * MICRO}, "phases_ns": spent, "problem": found}
    write(tile(cuts), unit="optimizer update", limiting="operators", **fields)


if __name__ == "__main__":
    main()
