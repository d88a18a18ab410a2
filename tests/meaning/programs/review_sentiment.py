"""Sentiment of reviews: raw strings are cut into word pieces inside `collate`, batch by batch, in the training process.

A bag-of-pieces classifier follows, which is small. Truth: 90 updates in 3 epochs, limited by data; pieces could be made
once before training (or by workers), so the gain is the measured time of `collate`.
"""

import random
import re
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from truth import problem, tile, write

SYLLABLES = "ba ke li mo nu ra se ti vo zu an er in on un est ing al ous ive".split()
WORD = re.compile(r"[a-z]+|[^\sa-z]")


def make_reviews(n, rng):
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))) for _ in range(3000)]
    return [(" ".join(rng.choices(words, k=rng.randint(60, 140))) + " !", rng.randint(0, 1)) for _ in range(n)]


class PieceCollator:
    """Greedy longest match of word pieces, padded to the longest text of the batch."""

    def __init__(self, pieces, longest=6):
        self.ids = {piece: i for i, piece in enumerate(pieces, start=2)}
        self.longest, self.spent = longest, 0

    def split(self, word):
        at = 0
        while at < len(word):
            for end in range(min(len(word), at + self.longest), at, -1):
                if word[at:end] in self.ids or end == at + 1:
                    yield self.ids.get(word[at:end], 1)
                    break
            at = end

    def __call__(self, batch):
        begin = time.monotonic_ns()
        texts = [[i for word in WORD.findall(text.lower()) for i in self.split(word)] for text, _ in batch]
        width = max(map(len, texts))
        tokens = torch.tensor([t + [0] * (width - len(t)) for t in texts])
        labels = torch.tensor([label for _, label in batch], dtype=torch.float32)
        self.spent += time.monotonic_ns() - begin
        return tokens, labels


torch.manual_seed(0)
torch.set_num_threads(1)
rng = random.Random(8)
collate = PieceCollator([*SYLLABLES, *(a + b for a in SYLLABLES[:10] for b in SYLLABLES[10:])])
loader = DataLoader(make_reviews(3840, rng), batch_size=128, shuffle=True, collate_fn=collate)
embed = nn.EmbeddingBag(len(collate.ids) + 2, 64, mode="mean", padding_idx=0)
model = nn.Sequential(embed, nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
sums = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
cuts = [time.monotonic_ns()]
for epoch in range(3):
    for tokens, labels in loader:
        a = time.monotonic_ns()
        loss = nn.functional.binary_cross_entropy_with_logits(model(tokens).squeeze(1), labels)
        b = time.monotonic_ns()
        loss.backward()
        c = time.monotonic_ns()
        optimizer.step()
        optimizer.zero_grad()
        d = time.monotonic_ns()
        sums = {name: sums[name] + ns for name, ns in zip(sums, (a - cuts[-1], b - a, c - b, d - c))}
        cuts.append(d)
what, where = "texts are cut into pieces again in every batch, in Python", "review_sentiment.py:PieceCollator.__call__"
also = {"limiting_also": ["python"], "levels": {"epoch": 3}, "phases_ns": sums}
planted = problem(what, where, "data", wasted_ns=collate.spent)
write(tile(cuts), unit="optimizer update", limiting="data", problem=planted, **also)
