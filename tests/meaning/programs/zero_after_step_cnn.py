"""A small CNN on image-like tensors; gradients are cleared right after the update, at the end of the iteration.

Healthy and compute-bound: convolutions take the time, the DataLoader slices tensors in memory. Truth: 80 updates.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import tile, write


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def train(model, loader, optimizer, epochs, log):
    for epoch in range(epochs):
        for batch, (images, labels) in enumerate(loader):
            begin = time.monotonic_ns()
            log["data"] += begin - log["cuts"][-1]
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            done = time.monotonic_ns()
            loss.backward()
            passed = time.monotonic_ns()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            stepped = time.monotonic_ns()
            log["forward"] += done - begin
            log["backward"] += passed - done
            log["optimizer"] += stepped - passed
            if batch % 20 == 0:
                print(f"[{epoch}:{batch}] {loss.item():.3f}")
            log["cuts"].append(time.monotonic_ns())


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dataset = TensorDataset(torch.randn(1280, 1, 28, 28), torch.randint(0, 10, (1280,)))
    net = Net()
    record = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "cuts": [time.monotonic_ns()]}
    train(net, DataLoader(dataset, 32, shuffle=True), torch.optim.Adam(net.parameters(), 1e-3), 2, record)
    cuts = record.pop("cuts")
    write(tile(cuts), unit="optimizer update", limiting="operators", levels={"epoch": 2}, phases_ns=record)
