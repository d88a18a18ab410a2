"""No optimizer at all: gradients by `loss.backward()`, the update by hand under `no_grad`, as lecture notes show it.

Healthy and compute-bound. Truth: 100 updates; the update loop and the clearing of gradients are the optimizer phase.
"""

import time

import torch
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)
W1 = (torch.randn(300, 900) * 0.05).requires_grad_()
b1 = torch.zeros(900, requires_grad=True)
W2 = (torch.randn(900, 900) * 0.03).requires_grad_()
b2 = torch.zeros(900, requires_grad=True)
W3 = (torch.randn(900, 10) * 0.03).requires_grad_()
params = [W1, b1, W2, b2, W3]
X, Y = torch.randn(6400, 300), torch.randint(0, 10, (6400,))
lr = 0.1

tm = time.monotonic_ns
f = g = u = 0
cuts = [tm()]
for step in range(100):
    lo = step * 64 % 6400
    xb, yb = X[lo : lo + 64], Y[lo : lo + 64]
    t0 = tm()
    h = torch.relu(torch.relu(xb @ W1 + b1) @ W2 + b2)
    loss = -torch.log_softmax(h @ W3, dim=1)[torch.arange(64), yb].mean()
    t1 = tm()
    loss.backward()
    t2 = tm()
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad
            p.grad = None
    t3 = tm()
    f += t1 - t0
    g += t2 - t1
    u += t3 - t2
    cuts.append(tm())
print("loss", loss.item())
write(
    tile(cuts), unit="parameter update", limiting="operators", phases_ns={"forward": f, "backward": g, "optimizer": u}
)
