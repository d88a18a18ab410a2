"""Menus of words of different length are classified; a DataLoader with two workers, whose collate function pads in pure Python.

Truth: 160 updates, limited by data: `pad_menus` in the workers builds nested lists and looks up n-grams of letters, so that
the loop waits for batches. The measured waits, without start of the workers and less the shortest one each, are what a fast collate would save. One may
say starvation, or python in the workers.
"""

import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Menus(Dataset):
    def __init__(self, n=160 * 48):
        r = random.Random(6)
        words = ["".join(r.choices(LETTERS, k=r.randint(3, 10))) for _ in range(800)]
        self.menus = [(r.choices(words, k=r.randint(10, 40)), r.randrange(5)) for _ in range(n)]

    def __len__(self):
        return len(self.menus)

    def __getitem__(self, i):
        return self.menus[i]


def trigram_ids(word, buckets=2000):
    padded = f"#{word}#"
    ids = []
    for i in range(len(padded) - 2):
        h = 0
        for ch in padded[i : i + 3]:
            h = (h * 131 + ord(ch)) % 1_000_003
        ids.append(h % buckets)
    return ids


def pad_menus(batch):
    longest = max(len(words) for words, _ in batch)
    rows = []
    for words, _ in batch:
        row = []
        for word in words:
            ids = trigram_ids(word)
            while len(ids) < 10:
                ids = ids + [0]
            row.append(ids)
        while len(row) < longest:
            row.append([0] * 10)
        rows.append(row)
    return torch.tensor(rows), torch.tensor([label for _, label in batch])


class MenuNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(2000, 24, mode="sum", padding_idx=0)
        self.out = nn.Linear(24, 5)

    def forward(self, ids):
        b, w, n = ids.shape
        return self.out(self.embed(ids.view(b * w, n)).view(b, w, -1).mean(1))


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    loader = DataLoader(Menus(), batch_size=48, shuffle=True, num_workers=2, collate_fn=pad_menus)
    net = MenuNet()
    opt = torch.optim.Adagrad(net.parameters(), lr=0.05)
    ns = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    waits = []
    cuts = [time.monotonic_ns()]
    for ids, labels in loader:
        t0 = time.monotonic_ns()
        loss = nn.functional.cross_entropy(net(ids), labels)
        t1 = time.monotonic_ns()
        opt.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        opt.step()
        t4 = time.monotonic_ns()
        waits.append(t0 - cuts[-1])
        ns["data"] += t0 - cuts[-1]
        ns["forward"] += t1 - t0
        ns["backward"] += t3 - t2
        ns["optimizer"] += t2 - t1 + t4 - t3
        cuts.append(t4)
    print(f"{len(waits)} batches, last loss {loss.item():.3f}")
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["starvation", "python"],
        phases_ns=ns,
        problem=problem(
            "collate pads and hashes in pure Python, more slowly than the model trains",
            "menu_collate.py:pad_menus",
            "data",
            wasted_ns=sum(waits[1:]) - min(waits[1:]) * len(waits[1:]),
        ),
        outliers={0: "start of the workers"},
    )


if __name__ == "__main__":
    main()
