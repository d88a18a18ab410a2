"""Hugging Face Accelerate: a plain loop with `accumulate`, two micro-batches an update, gathered metrics."""

import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(42)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    x = torch.randn(480, 14)
    y = x[:, 0].sign().clamp(0).long()
    model = nn.Sequential(nn.Linear(14, 32), nn.SiLU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    held_out = DataLoader(TensorDataset(x[:80], y[:80]), batch_size=16)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
    model, optimizer, loader, held_out, scheduler = accelerator.prepare(model, optimizer, loader, held_out, scheduler)
    begins, micro = [], 0
    for epoch in range(2):
        model.train()
        for inputs, labels in loader:
            if micro % 2 == 0:
                begins.append(time.monotonic_ns())
            micro += 1
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        hits = 0
        for inputs, labels in held_out:
            with torch.no_grad():
                guess = model(inputs).argmax(1)
            guess, labels = accelerator.gather_for_metrics((guess, labels))
            hits += (guess == labels).sum().item()
        accelerator.print(f"epoch {epoch}: accuracy {hits / 80:.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
