"""Knowledge distillation: a frozen teacher's forward pass in every step, then the student's forward, backward and update.

Healthy and compute-bound. Truth: 50 updates; the teacher is called without gradients inside of the step, which is no
validation.
"""

from time import monotonic_ns

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)
teacher = nn.Sequential(nn.Linear(200, 1500), nn.ReLU(), nn.Linear(1500, 1500), nn.ReLU(), nn.Linear(1500, 40)).eval()
student = nn.Sequential(nn.Linear(200, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 40))
optimizer = torch.optim.Adam(student.parameters())


def kd_loss(student_logits, teacher_logits, labels, temperature=4.0, alpha=0.7):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, -1),
        F.softmax(teacher_logits / temperature, -1),
        reduction="batchmean",
    )
    return alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


fw = bw = up = 0
cuts = [monotonic_ns()]
for _ in range(50):
    x, y = torch.randn(128, 200), torch.randint(0, 40, (128,))
    t0 = monotonic_ns()
    with torch.no_grad():
        targets = teacher(x)
    loss = kd_loss(student(x), targets, y)
    t1 = monotonic_ns()
    optimizer.zero_grad()
    t2 = monotonic_ns()
    loss.backward()
    t3 = monotonic_ns()
    optimizer.step()
    t4 = monotonic_ns()
    fw, bw, up = fw + t1 - t0, bw + t3 - t2, up + t2 - t1 + t4 - t3
    cuts.append(monotonic_ns())
write(
    tile(cuts),
    unit="optimizer update",
    limiting="operators",
    phases_ns={"forward": fw, "backward": bw, "optimizer": up},
)
