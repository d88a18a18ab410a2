"""Learns melodies of carillons with a small transformer whose attention has a bias for the distance of two bells, as
in T5. Planted: `DistanceBias.buckets` makes the table of distances in nested Python loops, anew in every layer and
every call, though it depends on nothing but the length. Truth: 75 updates and 3 validations beside them, limited by
Python. The gain is the measured time of all calls of `buckets` but the first one.
"""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, write

BELLS, LENGTH, WIDTH, HEADS, LAYERS = 47, 128, 64, 4, 3


class DistanceBias(nn.Module):
    calls = []

    def __init__(self, buckets=24, farthest=128):
        super().__init__()
        self.near, self.count, self.farthest = buckets // 2, buckets, farthest
        self.table = nn.Embedding(buckets, HEADS)

    def bucket(self, distance):
        if distance < 0:
            return 0
        if distance < self.near:
            return distance
        share = math.log(distance / self.near) / math.log(self.farthest / self.near)
        return min(self.count - 1, self.near + int(share * (self.count - self.near)))

    def buckets(self, length):
        begin = time.monotonic_ns()
        rows = []
        for query in range(length):
            rows.append([self.bucket(query - key) for key in range(length)])
        index = torch.tensor(rows)
        self.calls.append(time.monotonic_ns() - begin)
        return index

    def forward(self, length):
        return self.table(self.buckets(length)).permute(2, 0, 1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias, self.before, self.between = DistanceBias(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, future):
        batch, length, _ = x.shape
        q, k, v = self.heads(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(length) + future)
        x = x + self.join(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mix(self.between(x))


class Ringer(nn.Module):
    def __init__(self):
        super().__init__()
        self.bells, self.layers = nn.Embedding(BELLS, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))
        self.register_buffer("future", torch.full((LENGTH, LENGTH), -1e9).triu(1))

    def forward(self, notes):
        x = self.bells(notes)
        for layer in self.layers:
            x = layer(x, self.future)
        return x @ self.bells.weight.T


def ring_changes(bars):
    """A melody that wanders over the bells and comes back to its theme."""
    theme = torch.randint(-3, 4, (16,))
    steps = theme.repeat(bars) + (torch.rand(16 * bars) < 0.1) * torch.randint(-2, 3, (16 * bars,))
    return steps.cumsum(0).remainder(BELLS)


class Rehearsal:
    def __init__(self, melody, held_out):
        self.melody, self.held_out, self.model = melody, held_out, Ringer()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self.spent = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation"), 0)
        self.steps, self.done = [], 0

    def excerpt(self, source, size=4):
        starts = torch.randint(len(source) - LENGTH - 1, (size, 1))
        window = source[starts + torch.arange(LENGTH + 1)]
        return window[:, :-1], window[:, 1:]

    def loss(self, heard, next_bells):
        return F.cross_entropy(self.model(heard).flatten(0, 1), next_bells.flatten())

    @torch.no_grad()
    def validate(self, batches=5):
        return sum(self.loss(*self.excerpt(self.held_out)) for _ in range(batches)) / batches

    def rehearse(self, updates, every=25):
        begin = time.monotonic_ns()
        while self.done < updates:
            heard, next_bells = self.excerpt(self.melody)
            t0 = time.monotonic_ns()
            self.optimizer.zero_grad()
            t1 = time.monotonic_ns()
            loss = self.loss(heard, next_bells)
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            self.optimizer.step()
            self.done += 1
            end = time.monotonic_ns()
            parts = {"data": t0 - begin, "optimizer": t1 - t0 + end - t3, "forward": t2 - t1, "backward": t3 - t2}
            for name, ns in parts.items():
                self.spent[name] += ns
            self.steps.append((begin, end, "train"))
            begin = end
            if self.done % every == 0:
                print(f"{self.done}: {loss:.3f}, held out {self.validate():.3f}")
                end = time.monotonic_ns()
                self.spent["validation"] += end - begin
                self.steps.append((begin, end, "validation"))
                begin = end


if __name__ == "__main__":
    torch.manual_seed(5)
    torch.set_num_threads(1)
    rehearsal = Rehearsal(ring_changes(800), ring_changes(60))
    rehearsal.rehearse(75)
    found = problem(
        "the same table of distances is made in nested Python loops in each layer and call",
        "carillon_bias.py:DistanceBias.buckets",
        "python",
        wasted_ns=sum(DistanceBias.calls[1:]),
    )
    fields = {"limiting": "python", "phases_ns": rehearsal.spent, "problem": found, "beside": ["validation"]}
    write(rehearsal.steps, unit="optimizer update", **fields)
