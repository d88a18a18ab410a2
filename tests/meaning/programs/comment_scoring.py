"""Batch scoring of forum comments with a small GRU classifier; misspelt words are put right before the model sees them.

Truth: 120 batches. `closest` computes edit distances in pure Python for every unknown word, most of the time; a table of the
misspellings already seen would save nearly all of it, so that the gain is its measured time. Python is the limit, or data,
as it is the making of the batch.
"""

import random
from time import monotonic_ns

import torch
from torch import nn
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(1)
rnd = random.Random(9)

LEXICON = (
    "about people really forum please never always moderator thread comment answer question because different "
    "friend something nobody terrible wonderful stupid thanks support account password update version windows "
    "problem solved monday morning coffee keyboard screen printer driver install release network router cable"
).split()
IDS = {w: i + 1 for i, w in enumerate(LEXICON)}


def misspell(word):
    i = rnd.randrange(len(word) - 1)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def make_comments(n):
    out = []
    for _ in range(n):
        words = rnd.choices(LEXICON, k=24)
        out.append(" ".join(misspell(w) if rnd.random() < 0.25 else w for w in words))
    return out


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        left, diagonal = i, i - 1
        for j, cb in enumerate(b, 1):
            value = min(row[j] + 1, left + 1, diagonal + (ca != cb))
            diagonal, row[j], left = row[j], value, value
    return row[-1]


def closest(word):
    return min(LEXICON, key=lambda known: distance(word, known))


def encode(comment):
    global correcting
    ids = []
    for word in comment.split():
        if word not in IDS:
            began = monotonic_ns()
            word = closest(word)
            correcting += monotonic_ns() - began
        ids.append(IDS[word])
    return ids


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(LEXICON) + 1, 64)
        self.rnn = nn.GRU(64, 160, batch_first=True, bidirectional=True)
        self.head = nn.Linear(320, 6)

    def forward(self, x):
        h, _ = self.rnn(self.embed(x))
        return torch.sigmoid(self.head(h.mean(1)))


comments = make_comments(120 * 8)
model = Scorer().eval()
correcting = encoding = fw = 0
scores = []
cuts = [monotonic_ns()]
with torch.inference_mode():
    for k in range(0, len(comments), 8):
        batch = torch.tensor([encode(c) for c in comments[k : k + 8]])
        a = monotonic_ns()
        out = model(batch)
        b = monotonic_ns()
        scores.extend(out.max(1).values.tolist())
        cuts.append(monotonic_ns())
        encoding += a - cuts[-2]
        fw += b - a
print(f"{len(scores)} comments, mean score {sum(scores) / len(scores):.3f}")
assert len(scores) == 960
write(
    tile(cuts, "batch"),
    unit="batch",
    limiting="python",
    limiting_also=["data"],
    phases_ns={"data": encoding, "forward": fw},
    problem=problem(
        "edit distances to the whole lexicon in pure Python, for the same misspellings again and again",
        "comment_scoring.py:closest",
        "python",
        wasted_ns=correcting,
    ),
)
