"""A training that torch.profiler watches, with Python stacks, shapes and memory; the argument is its output file."""

import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters())


def train_step():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(torch.randn(16, 32)), torch.zeros(16, 4))
    loss.backward()
    optimizer.step()


watched = torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU],
    schedule=torch.profiler.schedule(wait=1, warmup=1, active=5),
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
    with_modules=True,
)
with watched as profiler:
    for _ in range(7):
        train_step()
        profiler.step()
profiler.export_chrome_trace(sys.argv[1])
