"""Early stopping: up to fifty epochs, the loss on held-out data after each, patience of three."""

import copy
import os
import time

import torch
from torch import nn

begins = []


def minibatches(x, y, size):
    order = torch.randperm(len(x))
    for at in range(0, len(x), size):
        rows = order[at : at + size]
        yield x[rows], y[rows]


def train_one_epoch(model, criterion, optimizer, x, y):
    model.train()
    running = 0.0
    for inputs, labels in minibatches(x, y, 20):
        begins.append(time.monotonic_ns())
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(inputs)
    return running / len(x)


def held_out_loss(model, criterion, x, y):
    model.eval()
    with torch.no_grad():
        return criterion(model(x), y).item()


class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.weights = patience, float("inf"), 0, None

    def __call__(self, loss, model):
        if loss < self.best - 1e-3:
            self.best, self.bad, self.weights = loss, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.manual_seed(35)
    x = torch.randn(240, 15)
    y = (x[:, :1] > 0.2 * torch.randn(240, 1)).float()
    model = nn.Sequential(nn.Linear(15, 128), nn.ReLU(), nn.Linear(128, 1))
    criterion, optimizer = nn.BCEWithLogitsLoss(), torch.optim.Adam(model.parameters(), lr=0.01)
    stopper = Stopper(patience=3)
    for epoch in range(50):
        train_loss = train_one_epoch(model, criterion, optimizer, x[:200], y[:200])
        loss = held_out_loss(model, criterion, x[200:], y[200:])
        print(f"epoch {epoch}: train {train_loss:.3f}, held out {loss:.3f}")
        if stopper(loss, model):
            break
    model.load_state_dict(stopper.weights)
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
