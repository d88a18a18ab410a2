"""A training on a GPU: convolutions and a perceptron, forward, backward and optimiser; the same kernels in every run.

python train.py STEPS [--kineto FILE] prints as JSON what a step took and, of a stretch of equal products, what CUDA's
own events say it took; with --kineto torch.profiler watches, and its kernels go to FILE, [name, ns] each.
"""

import argparse
import json
import time

import torch


def model() -> torch.nn.Module:
    """A small network of large layers."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64 * 16 * 16, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    ).cuda()


def train(steps: int) -> list[int]:
    """Train; the ns of each step."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False  # it would choose other kernels in each run
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    images = torch.randn(128, 3, 32, 32, device="cuda")
    labels = torch.randint(0, 10, (128,), device="cuda")
    taken = []
    for _ in range(steps):
        began = time.monotonic_ns()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        taken.append(time.monotonic_ns() - began)
    return taken


def products(count: int) -> float:
    """Multiply matrices, nothing else in between; ns by CUDA's events."""
    left = torch.randn(4096, 4096, device="cuda")
    right = torch.randn(4096, 4096, device="cuda")
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    with torch.cuda.nvtx.range("products"):
        first.record()
        for _ in range(count):
            torch.mm(left, right)
        last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) * 1e6


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int)
    parser.add_argument("--kineto")
    options = parser.parse_args()
    train(3)  # libraries load their kernels
    torch.mm(torch.ones(4096, 4096, device="cuda"), torch.ones(4096, 4096, device="cuda"))
    torch.cuda.synchronize()
    if options.kineto:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as watching:
            taken = train(options.steps)
            events_ns = products(50)
        device = torch.autograd.DeviceType.CUDA
        rows = [[e.name, 1000 * e.time_range.elapsed_us()] for e in watching.events() if e.device_type == device]
        with open(options.kineto, "w") as file:
            json.dump(rows, file)
    else:
        taken = train(options.steps)
        events_ns = products(50)
    print(json.dumps({"step_ns": sorted(taken)[len(taken) // 2], "products_ns": events_ns}))


if __name__ == "__main__":
    main()
