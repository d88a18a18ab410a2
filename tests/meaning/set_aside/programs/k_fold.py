"""Four-fold cross-validation: four models are trained one after the other by the same function, each tested at its end.

Healthy and compute-bound. Truth: 4 trainings of 30 updates, 120 updates in all; 4 tests beside them.
"""

import time

import torch
from torch import nn
from truth import write

log = {"forward": 0, "backward": 0, "optimizer": 0, "validation": 0}
steps = []


def make_model():
    return nn.Sequential(nn.Linear(120, 800), nn.ReLU(), nn.Linear(800, 800), nn.ReLU(), nn.Linear(800, 2))


def train_fold(x, y):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(30):
        chosen = torch.randint(0, len(x), (128,))
        t0 = time.monotonic_ns()
        optimizer.zero_grad()
        t1 = time.monotonic_ns()
        loss = nn.functional.cross_entropy(model(x[chosen]), y[chosen])
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        t4 = time.monotonic_ns()
        log["forward"] += t2 - t1
        log["backward"] += t3 - t2
        log["optimizer"] += t1 - t0 + t4 - t3
        steps.append((steps[-1][1] if steps else t0, t4, "train"))
    return model


def test_fold(model, x, y):
    with torch.inference_mode():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    end = time.monotonic_ns()
    log["validation"] += end - steps[-1][1]
    steps.append((steps[-1][1], end, "validation"))
    return accuracy


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.randn(2000, 120), torch.randint(0, 2, (2000,))
    folds = torch.arange(2000) % 4
    scores = []
    for k in range(4):
        model = train_fold(x[folds != k], y[folds != k])
        scores.append(test_fold(model, x[folds == k], y[folds == k]))
    print("accuracy", sum(scores) / 4)
    write(
        steps, unit="optimizer update", limiting="operators", beside=["validation"], levels={"fold": 4}, phases_ns=log
    )


main()
