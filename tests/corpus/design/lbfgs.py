"""Style transfer's way of optimising: LBFGS with a closure that it calls a varying number of times per step."""

import os
import time

import torch
from torch import nn

torch.manual_seed(13)
encoder = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 16, 3, padding=1))
for parameter in encoder.parameters():
    parameter.requires_grad_(False)


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
content_target, style_target = encoder(content), gram(encoder(style))
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image], lr=0.5, max_iter=8, line_search_fn="strong_wolfe")
begins = []
for step in range(30):
    begins.append(time.monotonic_ns())

    def closure():
        optimizer.zero_grad()
        features = encoder(image)
        loss = (features - content_target).square().mean() + 100 * (gram(features) - style_target).square().mean()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
    if step % 10 == 0:
        print(f"{step}: {loss.item():.5f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
