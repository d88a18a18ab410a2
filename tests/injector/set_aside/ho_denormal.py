"""Echoes in many rooms: a short sound, then its decay."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--rooms", type=int, default=512)
parser.add_argument("--block", type=int, default=256)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_flush_denormal(not DEFECT)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Echo:
    """Delay lines with feedback, one for each room; a line is as long as a block."""

    def __init__(self, rooms, block):
        self.line = torch.zeros(rooms, block)
        self.feedback = 0.5 + 0.2 * torch.rand(rooms, 1)
        self.out = torch.empty(rooms, block)

    def process(self, sound):
        torch.mul(self.line, self.feedback, out=self.out)  # DEFECT
        self.out += sound
        self.line, self.out = self.out, self.line
        return self.line


def loudness(block):
    return block.square().mean(1).sqrt()


def direct(voices, answer):
    """The voices as they come straight, through the filter of the microphone."""
    return torch.fft.irfft(torch.fft.rfft(voices) * answer)


echo = Echo(args.rooms, args.block)
voices = torch.randn(3, 4 * args.rooms, 2 * args.block)
answer = torch.fft.rfft(torch.exp(-torch.arange(2 * args.block) / 9.0))
window = torch.hann_window(args.block)
silence = torch.zeros(args.block)
times, total = Times(), 0.0
with torch.inference_mode():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        for part in range(7):
            sound = window * torch.randn(args.block) if step < 3 else silence
            heard = echo.process(sound)
        spectrum = torch.fft.rfft(heard[:64] * window).abs()
        straight = direct(voices[step % 3], answer)
        total += float(loudness(heard).sum() + spectrum.mean() + loudness(straight).mean())
        times.append(time.perf_counter_ns() - before)
report(times, total)
