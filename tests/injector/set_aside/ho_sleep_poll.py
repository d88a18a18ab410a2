"""A controller and the model of its plant, which runs in a thread of its own (NumPy)."""
import argparse, collections, json, os, queue, statistics, threading, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--states", type=int, default=260)
args = parser.parse_args()
DEFECT = args.defect == "on"

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Plant:
    def __init__(self, rng):
        drift = rng.standard_normal((args.states, args.states))
        self.drift = 0.9 * drift / np.abs(np.linalg.eigvals(drift)).max()
        self.state = rng.standard_normal((args.states, 96))
        self.orders, self.answers, self.ready = queue.Queue(), queue.Queue(), collections.deque()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            push = self.orders.get()
            for _ in range(8):
                self.state = np.tanh(self.drift @ self.state + push)
            self.ready.append(self.state) if DEFECT else self.answers.put(self.state)

    def order(self, push):
        self.orders.put(push)

    def wait(self):
        """The state after the last order."""
        if not DEFECT:
            return self.answers.get()
        while not self.ready:
            time.sleep(0.01)  # DEFECT
        return self.ready.popleft()


class Controller:
    def __init__(self, rng):
        self.gain = rng.standard_normal((args.states, args.states)) / args.states

    def answer(self, state):
        push = -self.gain @ state
        for _ in range(4):
            push = push - 0.1 * (self.gain.T @ (self.gain @ push + 0.1 * state))
        return push


rng = np.random.default_rng(5)
plant, controller = Plant(rng), Controller(rng)
push, total = np.zeros((args.states, 96)), 0.0
times = Times()
while len(times) < args.steps:
    before = time.perf_counter_ns()
    plant.order(push)
    state = plant.wait()
    push = controller.answer(state)
    total += float(np.abs(state).mean())
    times.append(time.perf_counter_ns() - before)
report(times, total)
