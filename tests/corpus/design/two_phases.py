"""Pre-training as a denoising autoencoder, then fine-tuning of a classifier on its encoder."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

begins = []


def pretrain(encoder, decoder, loader):
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for (x,) in loader:
        begins.append(time.monotonic_ns())
        noisy = x + 0.3 * torch.randn_like(x)
        loss = nn.functional.mse_loss(decoder(encoder(noisy)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def finetune(encoder, head, loader):
    for parameter in encoder[0].parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.SGD([*encoder[2].parameters(), *head.parameters()], lr=0.05, momentum=0.9)
    hits = 0
    for x, y in loader:
        begins.append(time.monotonic_ns())
        scores = head(encoder(x))
        loss = nn.functional.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (scores.argmax(1) == y).float().mean().item()
    return hits / len(loader)


def main():
    torch.manual_seed(17)
    x = torch.randn(640, 30)
    y = (x[:, 0] + x[:, 1] > 0).long()
    encoder = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 20), nn.ReLU())
    decoder = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 30))
    print("reconstruction", pretrain(encoder, decoder, DataLoader(TensorDataset(x), batch_size=16, shuffle=True)))
    head = nn.Linear(20, 2)
    print("accuracy", finetune(encoder, head, DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
