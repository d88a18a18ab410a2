"""Names corals in quadrats of a reef survey: a small network on colour histograms, many short epochs, a DataLoader
with two workers. Planted: the dataset parses its catalogue (JSON lines) when it is first asked, which is in the
workers; as they are not persistent, every epoch starts new ones, and each of them parses the catalogue again. Truth:
80 updates in 10 epochs of 8; the first of each epoch waits for the workers and stands out; limited by data. The gain
is what the first updates of all epochs but the first wait beyond a usual wait (`persistent_workers=True` saves it).
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write

CORALS = ["acropora", "porites", "montipora", "favia", "fungia", "sand"]
EPOCHS, ROWS, BINS = 10, 14_000, 48


def survey(path):
    dice = random.Random(8)
    with path.open("w") as out:
        for k in range(ROWS):
            coral = dice.randrange(len(CORALS))
            row = {"quadrat": f"Q{k:05}", "coral": CORALS[coral], "depth_m": round(dice.uniform(2, 30), 1)}
            row["bins"] = [dice.randrange(90) + 60 * (b % len(CORALS) == coral) for b in range(BINS)]
            out.write(json.dumps(row) + "\n")


class Quadrats(Dataset):
    def __init__(self, path, take):
        self.path, self.take, self.rows = path, take, None

    def catalogue(self):
        if self.rows is None:
            with self.path.open() as lines:
                self.rows = [json.loads(line) for line in lines]
        return self.rows

    def __len__(self):
        return self.take

    def __getitem__(self, k):
        row = self.catalogue()[k * (ROWS // self.take)]
        bins = torch.tensor(row["bins"], dtype=torch.float32)
        return torch.cat([bins / bins.sum() * BINS, torch.tensor([row["depth_m"] / 30])]), CORALS.index(row["coral"])


def fit(model, loader, optimizer, spent):
    cuts, waits = [time.monotonic_ns()], []
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        right = 0
        for features, corals in loader:
            t0 = time.monotonic_ns()
            waits.append(t0 - cuts[-1])
            optimizer.zero_grad()
            t1 = time.monotonic_ns()
            scores = model(features)
            loss = loss_of(scores, corals)
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            optimizer.step()
            t4 = time.monotonic_ns()
            right += (scores.argmax(1) == corals).sum().item()
            spent["forward"] += t2 - t1
            spent["backward"] += t3 - t2
            spent["optimizer"] += t1 - t0 + t4 - t3
            cuts.append(time.monotonic_ns())
        print(f"epoch {epoch}: {right / len(loader.dataset):.1%} right")
    spent["data"] = sum(waits)
    return cuts, waits


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "survey.jsonl")
        survey(path)
        loader = DataLoader(Quadrats(path, 8 * 96), batch_size=96, shuffle=True, num_workers=2)
        layers = nn.Linear(BINS + 1, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, len(CORALS))
        model = nn.Sequential(*layers)
        spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
        cuts, waits = fit(model, loader, torch.optim.Adam(model.parameters(), lr=1e-3), spent)
    firsts = range(0, len(waits), len(waits) // EPOCHS)
    usual = statistics.median(waits)
    wasted = sum(waits[k] - usual for k in firsts if k)
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        levels={"epoch": EPOCHS},
        phases_ns=spent,
        problem=problem(
            "every epoch starts new workers, each of which parses the whole catalogue again",
            "reef_quadrat_workers.py:Quadrats.catalogue",
            "data",
            wasted_ns=int(wasted),
        ),
        outliers={k: "new workers parse the catalogue" for k in firsts},
    )


if __name__ == "__main__":
    main()
