"""CPU time of questions to a folded trace: ./dev bench folded [STEPS ...]  (default 20000 1000000).

The trace is made by hand: records of that many steps, two kept in detail, statistics of the others. Prints what the
first answer of each kind costs, in seconds of this process.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from strobe import Trace
from strobe.model.kinds import PARTS
from strobe.present.summary import summarise
from tests.unit.folding import FoldedProcess, iterations_of
from tests.unit.hand_made import HandMadeProcess, make_trace, train_steps

QUESTIONS: dict[str, Callable[[Trace], object]] = {
    "steps": lambda trace: trace.steps(),
    "profile": lambda trace: trace.profile(),
    "operators": lambda trace: trace.operators(),
    "summary": summarise,
}


class ManySteps(FoldedProcess):
    """A short training whose records are repeated, with some noise."""

    def __init__(self, steps: int) -> None:
        short = iterations_of(HandMadeProcess({"main": train_steps(60)}), since=12, keep={13, 40})
        super().__init__({"main": train_steps(60)}, short)
        self.repeated = max(1, steps // len(short))

    def iterations(self) -> dict[str, np.ndarray]:
        once = super().iterations()
        many = {name: np.tile(values, self.repeated) for name, values in once.items()}
        noise_ns = np.random.default_rng(1).integers(0, 300_000, len(many["start_ns"]))
        many["duration_ns"] = many["duration_ns"] + noise_ns
        many["rest_ns"] = many["duration_ns"] - sum(many[f"{part}_ns"] for part in PARTS[:-1])
        many["start_ns"] = once["start_ns"][0] + np.cumsum(many["duration_ns"]) - many["duration_ns"]
        many["detail"][len(once["detail"]) :] = 0
        return many

    def cells(self) -> dict[int, np.ndarray]:
        return {number: np.tile(values, self.repeated) for number, values in super().cells().items()}


def main() -> None:
    for steps in [int(word) for word in sys.argv[1:]] or [20_000, 1_000_000]:
        process = ManySteps(steps)
        for name, ask in QUESTIONS.items():
            trace = make_trace(process)
            begin = time.process_time()
            ask(trace)
            print(f"{steps:>9} steps  {name:<10} {time.process_time() - begin:6.2f} s")


if __name__ == "__main__":
    main()
