"""A variational autoencoder: reconstruction and divergence, a sample drawn after each epoch."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(48, 32), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(32, 8), nn.Linear(32, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 48))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance

    @torch.no_grad()
    def sample(self, n):
        return self.decoder(torch.randn(n, 8))


def loss_of(output, x, mean, log_variance):
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(dim=1).mean()
    return nn.functional.mse_loss(output, x) + 0.01 * divergence


begins = []
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(torch.randn(480, 48)), batch_size=24, shuffle=True)
for epoch in range(4):
    for (x,) in loader:
        begins.append(time.monotonic_ns())
        output, mean, log_variance = model(x)
        loss = loss_of(output, x, mean, log_variance)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} sample {model.sample(4).std().item():.3f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
