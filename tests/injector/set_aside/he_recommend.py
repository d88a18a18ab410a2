"""Films for people: a factor model with validation every 20 steps."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=1024)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
PEOPLE, FILMS = 1000, 600

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Factors(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.people, self.films = nn.Embedding(PEOPLE, width), nn.Embedding(FILMS, width)
        self.head = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, people, films):
        a, b = self.people(people), self.films(films)
        return (a * b).sum(1) + self.head(torch.cat([a, b], 1)).squeeze(1)


def draw(count):
    people, films = torch.randint(0, PEOPLE, (count,)), torch.randint(0, FILMS, (count,))
    return people, films, torch.sin(people * 0.01) + torch.cos(films * 0.02)


@torch.no_grad()
def validate(model, people, films, stars):
    model.eval()
    error = nn.functional.mse_loss(model(people, films), stars).item()
    model.train()
    return error


model = Factors()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
held = draw(3000)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    people, films, stars = draw(args.batch)
    loss = nn.functional.mse_loss(model(people, films), stars)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        total += validate(model, *held)
    times.append(time.perf_counter_ns() - before)
report(times, total)
