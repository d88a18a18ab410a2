"""Mixed precision: autocast to bfloat16 and a gradient scaler; a small residual network, one-cycle schedule."""

import os
import time

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.b = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return x + self.b(functional.silu(self.norm(self.a(x))))


def batches(count):
    for _ in range(count):
        labels = torch.randint(0, 4, (8,))
        yield torch.randn(8, 3, 12, 12) + labels.view(-1, 1, 1, 1), labels


def main():
    torch.manual_seed(5)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        Residual(16),
        nn.MaxPool2d(2),
        Residual(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    head = nn.Linear(16, 4)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=60)
    scaler = torch.amp.GradScaler("cpu")
    begins = []
    for images, labels in batches(60):
        begins.append(time.monotonic_ns())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(head(model(images)), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
    print(f"loss {loss.item():.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
