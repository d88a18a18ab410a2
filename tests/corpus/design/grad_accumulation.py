"""Four micro-batches for each update of the optimizer; the step is the update."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


def build():
    torch.manual_seed(2)
    x = torch.randn(1280, 32)
    y = x @ torch.randn(32, 1) + 0.1 * torch.randn(1280, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 1))
    return model, loader, torch.optim.AdamW(model.parameters(), lr=2e-3)


def main():
    model, loader, optimizer = build()
    begins = []
    running = 0.0
    optimizer.zero_grad()
    for index, (x, y) in enumerate(loader):
        if index % ACCUMULATE == 0:
            begins.append(time.monotonic_ns())
        loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE
        loss.backward()
        running += loss.item()
        if (index + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
            if (index + 1) % (ACCUMULATE * 10) == 0:
                print(f"update {(index + 1) // ACCUMULATE}: loss {running / 10:.4f}")
                running = 0.0
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
