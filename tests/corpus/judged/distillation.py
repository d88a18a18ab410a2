"""Knowledge distillation: a frozen teacher's soft targets, a small student; both run forward, one backward."""

import os
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TEMPERATURE, ALPHA = 3.0, 0.7


def network(width, depth):
    layers = [nn.Linear(20, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 5))


def distillation_loss(student, teacher, labels):
    soft = F.kl_div(F.log_softmax(student / TEMPERATURE, 1), F.softmax(teacher / TEMPERATURE, 1), reduction="batchmean")
    return ALPHA * TEMPERATURE**2 * soft + (1 - ALPHA) * F.cross_entropy(student, labels)


def main():
    torch.manual_seed(34)
    x = torch.randn(720, 20)
    y = x[:, :5].argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
    teacher, student = network(64, 3).eval(), network(16, 1)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=60)
    begins, agree = [], 0
    for data, target in loader:
        begins.append(time.monotonic_ns())
        with torch.no_grad():
            wanted = teacher(data)
        got = student(data)
        loss = distillation_loss(got, wanted, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        agree += (got.argmax(1) == wanted.argmax(1)).sum().item()
    print(f"agreement {agree / len(x):.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
