"""Character model with an LSTM and gradient clipping."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--length", type=int, default=40)
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

class CharModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = torch.nn.Embedding(64, 48), torch.nn.LSTM(48, 160, batch_first=True)
        self.out = torch.nn.Linear(160, 64)

    def forward(self, text):
        hidden, _ = self.lstm(self.embed(text))
        return self.out(hidden)


def main():
    model = CharModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    text = torch.randint(0, 64, (5, args.batch, args.length + 1))
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        chunk = text[step % 5]
        scores = model(chunk[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()
