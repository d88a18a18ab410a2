"""Finds wrecks in sonar echoes with a 1-D network; a batch sampler prefers echoes with a high loss, which the
training reports back to it. Planted: `Hardest.__iter__` sorts the numbers of all echoes by loss, with a key function,
for every batch, only to take from the first eighth of it, though a batch changes the order of 48. Truth: 150 updates
in 6 epochs, limited by data, the sorting, which is Python calling a lambda (one may say python); every 40th update
also prints a line. The gain is the measured sorting less what `numpy.argpartition` takes for the same, measured after
the loop.
"""

import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler
from truth import problem, tile, write

ECHOES, LENGTH, BATCH, PER_EPOCH, EPOCHS = 36_000, 96, 48, 25, 6


class Echoes(Dataset):
    def __init__(self, seed):
        dice = np.random.default_rng(seed)
        self.wreck = dice.random(ECHOES) < 0.2
        self.traces = dice.normal(size=(ECHOES, LENGTH)).astype(np.float32)
        middle = dice.integers(10, LENGTH - 10, ECHOES)
        self.traces[np.arange(ECHOES), middle] += 3 * self.wreck
        self.traces[np.arange(ECHOES), middle + 4] -= 2 * self.wreck

    def __len__(self):
        return ECHOES

    def __getitem__(self, k):
        return k, torch.from_numpy(self.traces[k]), float(self.wreck[k])


class Hardest(Sampler):
    """Batches of which half are drawn from the hardest eighth of all echoes."""

    def __init__(self, count, batches, seed=0):
        self.losses, self.batches, self.dice = [1.0 + k / count for k in range(count)], batches, random.Random(seed)
        self.dice.shuffle(self.losses)
        self.sorting = 0

    def report(self, which, losses):
        for k, loss in zip(which.tolist(), losses.tolist(), strict=True):
            self.losses[k] = 0.5 * self.losses[k] + 0.5 * loss

    def __len__(self):
        return self.batches

    def __iter__(self):
        count = len(self.losses)
        for _ in range(self.batches):
            begin = time.monotonic_ns()
            ranked = sorted(range(count), key=lambda k: -self.losses[k])
            self.sorting += time.monotonic_ns() - begin
            hard = self.dice.sample(ranked[: count // 8], BATCH // 2)
            yield hard + self.dice.choices(range(count), k=BATCH - len(hard))


class Detector(nn.Sequential):
    def __init__(self, width=24):
        super().__init__(
            nn.Unflatten(1, (1, LENGTH)),
            nn.Conv1d(1, width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(4),
            nn.Flatten(),
            nn.Linear(4 * width, 1),
        )


class Survey:
    def __init__(self, echoes):
        self.sampler = Hardest(len(echoes), PER_EPOCH)
        self.loader = DataLoader(echoes, batch_sampler=self.sampler, num_workers=0)
        self.model = Detector()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.criterion = nn.BCEWithLogitsLoss(reduction="none")
        self.spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
        self.cuts = [time.monotonic_ns()]

    def update(self, which, traces, wreck):
        t0 = time.monotonic_ns()
        losses = self.criterion(self.model(traces).squeeze(1), wreck.float())
        loss = losses.mean()
        t1 = time.monotonic_ns()
        loss.backward()
        t2 = time.monotonic_ns()
        self.optimizer.step()
        self.optimizer.zero_grad()
        t3 = time.monotonic_ns()
        self.sampler.report(which, losses.detach())
        if len(self.cuts) % 40 == 0:
            print(f"update {len(self.cuts)}: loss {loss.item():.4f}")
        self.spent["data"] += t0 - self.cuts[-1]
        self.spent["forward"] += t1 - t0
        self.spent["backward"] += t2 - t1
        self.spent["optimizer"] += t3 - t2
        self.cuts.append(time.monotonic_ns())

    def run(self, epochs):
        for _ in range(epochs):
            for batch in self.loader:
                self.update(*batch)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    survey = Survey(Echoes(3))
    survey.run(EPOCHS)
    updates = len(survey.cuts) - 1
    begin = time.monotonic_ns()
    for _ in range(updates):
        np.argpartition(-np.asarray(survey.sampler.losses), ECHOES // 8)[: ECHOES // 8].tolist()
    wasted = survey.sampler.sorting - (time.monotonic_ns() - begin)
    what = "all echoes are sorted by loss for every batch"
    found = problem(what, "wreck_sonar_sampler.py:Hardest.__iter__", "data", wasted_ns=wasted)
    fields = {"limiting": "data", "limiting_also": ["python"], "phases_ns": survey.spent, "problem": found}
    write(tile(survey.cuts), unit="optimizer update", levels={"epoch": EPOCHS}, **fields)


if __name__ == "__main__":
    main()
