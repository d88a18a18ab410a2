"""Offline inference: an image classifier scores 100 batches under `inference_mode` and appends results to a list.

Healthy and compute-bound. Truth: 100 batches; no gradients anywhere.
"""

import time

import torch
from torch import nn
from truth import tile, write


def score(model, batches):
    results, marks = [], [time.monotonic_ns()]
    running = 0
    with torch.inference_mode():
        for images in batches:
            a = time.monotonic_ns()
            probabilities = model(images).softmax(-1)
            running += time.monotonic_ns() - a
            results.extend(probabilities.max(-1).indices.tolist())
            marks.append(time.monotonic_ns())
    return results, marks, running


torch.manual_seed(0)
torch.set_num_threads(1)
classifier = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=2),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(1568, 100),
).eval()
found, cuts, forward = score(classifier, (torch.rand(32, 3, 32, 32) for _ in range(100)))
print(len(found), "scored")
write(tile(cuts, "batch"), unit="batch", limiting="operators", phases_ns={"forward": forward})
