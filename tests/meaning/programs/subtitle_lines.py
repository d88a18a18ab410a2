"""Which film is this line of a subtitle from? A bag of letter pairs, fed by three generators, one behind the other.

`lines` reads the file, `encode` turns letters into numbers, `batches` gathers 128 lines into tensors.
Planted: `encode` looks up each letter by `list.index` in an alphabet of some 700 signs, where a dictionary would do.
Truth: 2 epochs of 150 updates, limited by data (or Python), in `encode`; the gain is measured: the time of data beyond
that of the same three generators with a dictionary, run once after training.
"""

import random
import time

import torch
from torch import nn
from truth import problem, tile, write

ALPHABET = [chr(c) for c in (*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x530))]
PLACE = {letter: i for i, letter in enumerate(ALPHABET)}
FILMS, BUCKETS = 20, 1 << 14


def write_subtitles(path, n=128 * 150):
    rng = random.Random(17)
    casts = [rng.sample(ALPHABET[400:], 40) + [" "] * 8 for _ in range(FILMS)]
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(n):
            film = rng.randrange(FILMS)
            out.write(f"{film}\t{''.join(rng.choices(casts[film], k=rng.randint(15, 38)))}.\n")


def lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            film, text = line.rstrip("\n").split("\t")
            yield int(film), text


def encode(pairs, place):
    for film, text in pairs:
        numbers = [place(letter) for letter in text]
        yield film, [(a * 31 + b * 977) % BUCKETS for a, b in zip(numbers, numbers[1:])]


def batches(encoded, size=128):
    films, flat, starts = [], [], []
    for film, numbers in encoded:
        starts.append(len(flat))
        flat += numbers
        films.append(film)
        if len(films) == size:
            yield torch.tensor(flat), torch.tensor(starts), torch.tensor(films)
            films, flat, starts = [], [], []


torch.manual_seed(0)
torch.set_num_threads(1)
write_subtitles("subtitles.tsv")
bag = nn.EmbeddingBag(BUCKETS, 24)
head = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, FILMS))
opt = torch.optim.SGD([*bag.parameters(), *head.parameters()], lr=0.5)
data = forward = backward = updating = 0
cuts = [time.monotonic_ns()]
for epoch in range(2):
    for flat, starts, films in batches(encode(lines("subtitles.tsv"), ALPHABET.index)):
        a = time.monotonic_ns()
        loss = nn.functional.cross_entropy(head(bag(flat, starts)), films)
        b = time.monotonic_ns()
        loss.backward()
        c = time.monotonic_ns()
        opt.step()
        opt.zero_grad()
        d = time.monotonic_ns()
        data, forward, backward, updating = data + a - cuts[-1], forward + b - a, backward + c - b, updating + d - c
        cuts.append(d)
    print(f"epoch {epoch}: loss {loss.item():.3f}")

began = time.monotonic_ns()
for _ in batches(encode(lines("subtitles.tsv"), PLACE.__getitem__)):
    pass
wasted = data - 2 * (time.monotonic_ns() - began)
write(
    tile(cuts),
    unit="optimizer update",
    limiting="data",
    limiting_also=["python"],
    levels={"epoch": 2},
    phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": updating},
    problem=problem("letters are searched in a list", "subtitle_lines.py:encode", "data", wasted_ns=wasted),
)
