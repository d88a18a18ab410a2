"""Classifies heartbeats with a 1-D CNN; validation runs in the middle of an epoch as well as at its end.

`run(loader, train)` goes over batches for both: while it trains it calls itself with `train=False` after every 20th
batch. Healthy and compute-bound: convolutions. Truth: 4 epochs of 40 updates, 160 in all, and 8 validation passes of 8
batches each beside them; their batches are no updates.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import write

torch.manual_seed(21)
torch.set_num_threads(1)
VALIDATE_EVERY = 20

steps = []
phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "validation": 0}


class BeatNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 32, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(32, 64, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(64, 64, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=2))


def beats(count, batch_size, shuffle):
    labels = torch.randint(0, 5, (count,))
    waves = torch.randn(count, 1, 512) + labels[:, None, None] * torch.sin(torch.arange(512) / 9)
    return DataLoader(TensorDataset(waves, labels), batch_size=batch_size, shuffle=shuffle)


def run(loader, train=True):
    model.train(train)
    correct = seen = 0
    began = steps[-1][1] if steps else time.monotonic_ns()
    for index, (x, y) in enumerate(loader):
        t0 = time.monotonic_ns()
        with torch.set_grad_enabled(train):
            logits = model(x)
            loss = criterion(logits, y)
        t1 = time.monotonic_ns()
        if train:
            optimizer.zero_grad()
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            optimizer.step()
            t4 = time.monotonic_ns()
            phases["data"] += t0 - began
            phases["forward"] += t1 - t0
            phases["backward"] += t3 - t2
            phases["optimizer"] += t2 - t1 + t4 - t3
        correct += (logits.argmax(dim=1) == y).sum().item()
        seen += len(y)
        if train:
            began, started = time.monotonic_ns(), began
            steps.append((started, began, "train"))
            if (index + 1) % VALIDATE_EVERY == 0:
                print(f"  after {index + 1} batches: validation accuracy {run(valid, train=False):.3f}")
                model.train()
                began, started = time.monotonic_ns(), began
                steps.append((started, began, "validation"))
                phases["validation"] += began - started
    return correct / seen


model = BeatNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
training, valid = beats(1280, 32, True), beats(256, 32, False)
for epoch in range(4):
    print(f"epoch {epoch}: training accuracy {run(training):.3f}")
write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["validation"],
    levels={"epoch": 4, "validation batch": 64},
    phases_ns=phases,
)
