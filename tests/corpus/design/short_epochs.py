"""Twenty-five epochs of three batches: the outer loop is nearly as regular as the inner one."""

import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

begins = []


def epoch(net, loader, opt):
    total = 0.0
    for features, target in loader:
        begins.append(time.monotonic_ns())
        opt.zero_grad()
        prediction = net(features)
        loss = torch.nn.functional.huber_loss(prediction, target)
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(12)
    x = torch.rand(96, 6)
    y = (x * torch.arange(6.0)).sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    net = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))
    opt = torch.optim.Adagrad(net.parameters(), lr=0.05)
    for number in range(25):
        mean = epoch(net, loader, opt)
        print(f"epoch {number + 1}/25 - loss: {mean:.4f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)
