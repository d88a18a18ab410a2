"""What recording costs: the example, and one ITT range. Of Python calls: benchmarks/overhead.py.

./dev bench cost [training|ranges ...] [--rounds 5] [--steps 200]

CPU time, not wall time, in interleaved rounds: medians for whole programs, minima for single events. Figures of a busy
machine are only good as ratios within one run of this script.
"""

import argparse
import sys

from measure import EXAMPLE, STROBE, checked, folder, interleaved, middle, table

RANGES = """
import time, torch
torch.set_num_threads(1)
x = torch.ones(4)
least = 1 << 62
for _ in range(9):
    start = time.process_time_ns()
    for _ in range(50_000):
        torch.neg(x)
    least = min(least, time.process_time_ns() - start)
print(least / 50_000)
"""


def training(rounds: int, steps: int) -> None:
    """CPU time of the example with and without strobe: the program alone, and with strobe's work after its end."""
    program = f"{sys.executable} {EXAMPLE} --steps {steps} --seed 1 >/dev/null"
    # bash counts the program and its children; wait4 around it all counts strobe's own process as well.
    timed = ["bash", "-c", f'TIMEFORMAT="%U %S"; time {program}']
    alone: dict[str, list[float]] = {"plain": [], "strobe": []}
    whole: dict[str, list[float]] = {"plain": [], "strobe": []}
    with folder() as place:
        for number, way in interleaved(rounds, ["plain", "strobe"]):
            before = [] if way == "plain" else [STROBE, "run", "--quiet", "-o", f"{number}.strobe", "--"]
            done = checked([*before, *timed], place)
            alone[way].append(sum(map(float, done.stderr.split()[-2:])))
            whole[way].append(done.cpu_s)
    print(f"\n## The example, {steps} steps, {rounds} rounds, CPU seconds (median)\n")
    print(
        table(
            [
                {
                    "what": what,
                    "plain": f"{middle(values['plain']):.2f}",
                    "strobe": f"{middle(values['strobe']):.2f}",
                    "ratio of medians": f"{middle(values['strobe']) / middle(values['plain']):.3f}",
                    "median ratio of a round": f"{middle([b / a for a, b in zip(*values.values(), strict=True)]):.3f}",
                    "ratio of minima": f"{min(values['strobe']) / min(values['plain']):.3f}",
                }
                for what, values in (("the program", alone), ("with strobe's own process", whole))
            ]
        )
    )


def ranges(rounds: int) -> None:
    """Nanoseconds that one PyTorch operator, that is one ITT range, gains under strobe."""
    least = {"plain": 1e18, "strobe": 1e18}
    with folder() as place:
        (place / "ranges.py").write_text(RANGES)
        for number, way in interleaved(rounds, ["plain", "strobe"]):
            before = [sys.executable] if way == "plain" else [STROBE, "run", "--quiet", "-o", f"{number}.strobe"]
            least[way] = min(least[way], float(checked([*before, "ranges.py"], place).stdout))
    print(f"\n## One ITT range (`torch.neg` of four numbers), {rounds} rounds, least CPU nanoseconds\n")
    print(
        table([{**{way: f"{ns:.0f}" for way, ns in least.items()}, "added": f"{least['strobe'] - least['plain']:.0f}"}])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["training", "ranges"], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    parts = options.parts or ["training", "ranges"]
    if "training" in parts:
        training(options.rounds, options.steps)
    if "ranges" in parts:
        ranges(options.rounds)


if __name__ == "__main__":
    main()
