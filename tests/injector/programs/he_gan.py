"""Generator against discriminator, one update of each per step."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=300)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def network(inside, outside):
    return torch.nn.Sequential(torch.nn.Linear(inside, 320), torch.nn.LeakyReLU(0.2), torch.nn.Linear(320, 320), torch.nn.LeakyReLU(0.2),
                               torch.nn.Linear(320, outside))


class Game:
    def __init__(self):
        self.maker, self.judge = network(32, 128), network(128, 1)
        self.maker_optimizer = torch.optim.Adam(self.maker.parameters(), lr=2e-4)
        self.judge_optimizer = torch.optim.Adam(self.judge.parameters(), lr=2e-4)
        self.loss = torch.nn.BCEWithLogitsLoss()

    def step(self, real):
        made = self.maker(torch.randn(len(real), 32))
        one, zero = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        judge_loss = self.loss(self.judge(real), one) + self.loss(self.judge(made.detach()), zero)
        self.judge_optimizer.zero_grad()
        judge_loss.backward()
        self.judge_optimizer.step()
        maker_loss = self.loss(self.judge(made), one)
        self.maker_optimizer.zero_grad()
        maker_loss.backward()
        self.maker_optimizer.step()
        return judge_loss.item()


game, real = Game(), torch.randn(4, args.batch, 128)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += game.step(real[step % 4])
    times.append(time.perf_counter_ns() - before)
report(times, total)
