"""A single update of a small network, as somebody does who tries something out."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.zero_grad()
loss = model(torch.randn(16, 4)).square().mean()
loss.backward()
optimizer.step()
print(f"{loss.item():.3f}")
