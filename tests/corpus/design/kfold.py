"""Cross-validation: five folds, each a fresh model trained for a few epochs and tested on what was held out."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

FOLDS, EPOCHS = 5, 3
begins = []


def fit(data, indices):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Subset(data, indices), batch_size=16, shuffle=True)
    for _ in range(EPOCHS):
        for x, y in loader:
            begins.append(time.monotonic_ns())
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model


@torch.no_grad()
def accuracy(model, data, indices):
    hits = 0
    for x, y in DataLoader(Subset(data, indices), batch_size=8):
        hits += (model(x).argmax(1) == y).sum().item()
    return hits / len(indices)


def main():
    torch.manual_seed(11)
    x = torch.randn(160, 8)
    data = TensorDataset(x, x[:, :3].argmax(1))
    order = torch.randperm(len(data)).tolist()
    size = len(data) // FOLDS
    scores = []
    for fold in range(FOLDS):
        held_out = order[fold * size : (fold + 1) * size]
        rest = order[: fold * size] + order[(fold + 1) * size :]
        scores.append(accuracy(fit(data, rest), data, held_out))
        print(f"fold {fold}: {scores[-1]:.2f}")
    print(f"mean {sum(scores) / FOLDS:.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
