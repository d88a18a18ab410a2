"""Sorts court rulings into fields of law with a small transformer; a function cuts texts into word pieces for each batch.

Truth: 80 updates (5 epochs of 16), limited by data: `pieces` in pure Python. The same rulings are cut up again in each epoch; the
measured time of that after the first epoch is the gain, as pieces could be kept. One may say python.
"""

import random
import re
import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(14)
r = random.Random(14)

SYLLABLES = ["ver", "trag", "kla", "ge", "ur", "teil", "recht", "haf", "tung", "be", "ruf", "ung", "an", "walt", "kos", "ten", "frist"]
VOCAB = {piece: i + 2 for i, piece in enumerate(sorted({s[:k] for s in SYLLABLES for k in range(1, 6)} | set(SYLLABLES)))}
LENGTH = 96
WORD = re.compile(r"\w+|[^\w\s]")
cutting = 0


def ruling(field):
    words = []
    for _ in range(260):
        word = "".join(r.choices(SYLLABLES, k=r.randint(2, 5)))
        words.append(word if r.random() > 0.1 else f"{word}{SYLLABLES[field]}")
    return " ".join(words) + "."


labels = [r.randrange(6) for _ in range(384)]
rulings = [ruling(field) for field in labels]


def pieces(text):
    """Greedy longest match, as BERT does it."""
    ids = []
    for word in WORD.findall(text.lower()):
        start = 0
        while start < len(word):
            end = min(len(word), start + 6)
            while end > start and word[start:end] not in VOCAB:
                end -= 1
            if end == start:
                ids.append(1)
                break
            ids.append(VOCAB[word[start:end]])
            start = end
    return ids


def make_batch(picks):
    global cutting
    begin = time.monotonic_ns()
    cut = [pieces(rulings[i]) for i in picks]
    cutting += time.monotonic_ns() - begin
    ids = torch.zeros(len(picks), LENGTH, dtype=torch.long)
    for row, one in enumerate(cut):
        one = one[:LENGTH]
        ids[row, : len(one)] = torch.tensor(one)
    return ids, torch.tensor([labels[i] for i in picks])


class Sorter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB) + 2, width, padding_idx=0)
        self.place = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 64, batch_first=True, dropout=0.0)
        self.head = nn.Linear(width, 6)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids) + self.place).mean(1))


model = Sorter()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
data = fwd = bwd = upd = first = 0
order = list(range(len(rulings)))
cuts = [time.monotonic_ns()]
for epoch in range(5):
    r.shuffle(order)
    for start in range(0, len(order), 24):
        ids, target = make_batch(order[start : start + 24])
        t0 = time.monotonic_ns()
        loss = F.cross_entropy(model(ids), target)
        t1 = time.monotonic_ns()
        loss.backward()
        t2 = time.monotonic_ns()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        t3 = time.monotonic_ns()
        data += t0 - cuts[-1]
        fwd += t1 - t0
        bwd += t2 - t1
        upd += t3 - t2
        if start == 0:
            print(f"epoch {epoch}: {loss.item():.3f}")
        cuts.append(time.monotonic_ns())
    if epoch == 0:
        first = cutting

write(
    tile(cuts),
    unit="optimizer update",
    levels={"epoch": 5},
    limiting="data",
    limiting_also=["python"],
    phases_ns={"data": data, "forward": fwd, "backward": bwd, "optimizer": upd},
    problem=problem(
        "the same texts are cut into word pieces again in every epoch",
        "court_rulings.py:pieces",
        "data",
        wasted_ns=cutting - first,
    ),
)
