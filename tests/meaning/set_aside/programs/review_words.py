"""A bag-of-embeddings classifier of reviews; a generator function cuts the text into word pieces as batches are asked for.

Tokenising in pure Python is most of the time. Truth: 150 updates; data is the limit (python, if one asks what data does);
the gain is the measured wait for batches, which tokenising ahead would save.
"""

import random
from time import monotonic_ns

import torch
import torch.nn as nn
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)

SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
GOOD, BAD = ["".join(random.choices(SYLLABLES, k=3)) for _ in range(200)], ["".join(random.choices(SYLLABLES, k=3)) for _ in range(200)]
VOCAB = {piece: n + 2 for n, piece in enumerate(SYLLABLES + [a + b for a in SYLLABLES for b in SYLLABLES])}
LENGTH = 128


def write_review(label):
    words = [random.choice((GOOD, BAD)[label] if random.random() < 0.3 else random.choice((GOOD, BAD))) for _ in range(60)]
    return " ".join(w.capitalize() if random.random() < 0.1 else w + random.choice(["", "", ",", "."]) for w in words)


corpus = [(write_review(i % 2), i % 2) for i in range(2000)]


def word_pieces(text):
    ids = []
    for word in text.lower().split():
        word = "".join(ch for ch in word if ch.isalnum())
        start = 0
        while start < len(word):
            end = len(word)
            while end > start and word[start:end] not in VOCAB:
                end -= 1
            if end == start:
                ids.append(1)
                break
            ids.append(VOCAB[word[start:end]])
            start = end
    return ids[:LENGTH] + [0] * (LENGTH - len(ids))


def batches(size):
    order = list(range(len(corpus)))
    while True:
        random.shuffle(order)
        for k in range(0, len(order) - size + 1, size):
            rows = [corpus[i] for i in order[k : k + size]]
            yield torch.tensor([word_pieces(text) for text, _ in rows]), torch.tensor([label for _, label in rows])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB) + 2, 64, padding_idx=0)
        self.body = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))

    def forward(self, ids):
        return self.body(self.embed(ids).mean(1))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
data = fw = bw = up = 0
cuts = [monotonic_ns()]
for step, (ids, labels) in enumerate(batches(100)):
    a = monotonic_ns()
    data += a - cuts[-1]
    loss = criterion(model(ids), labels)
    b = monotonic_ns()
    optimizer.zero_grad()
    c = monotonic_ns()
    loss.backward()
    d = monotonic_ns()
    optimizer.step()
    e = monotonic_ns()
    fw, bw, up = fw + b - a, bw + d - c, up + c - b + e - d
    if step % 25 == 0:
        print(step, round(loss.item(), 4))
    cuts.append(monotonic_ns())
    if step == 149:
        break

share = data / (cuts[-1] - cuts[0])
print(f"data {share:.0%}")
assert share > 0.55
write(
    tile(cuts, "train"),
    unit="optimizer update",
    limiting="data",
    limiting_also=["python"],
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    problem=problem("texts are tokenised in Python in the loop", "review_words.py:word_pieces", "data", wasted_ns=data),
)
