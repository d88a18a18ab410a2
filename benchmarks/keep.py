"""What keeping a few iterations saves: a training of fast steps with stalls, `--keep 10` beside `--keep all` and plain.

    ./dev bench keep [--steps 20000] [--rounds 3]

The three are run in turn in every round. Sizes are of the block file (tiles and summary are made of it afterwards).
CPU time is that of `strobe run` and all its children: the program, and the completion and summary of the trace. The
recorder's own thread is measured separately. Executions of every function and operator must be equal; every stall must
be an iteration that is kept in detail.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from measure import STROBE, checked

PROGRAM = """
import json, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

steps, stalls, truth = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
torch.manual_seed(1)
every = steps // stalls

class Samples(Dataset):
    def __len__(self):
        return steps * 8
    def __getitem__(self, index):
        if index % 8 == 0 and index // 8 % every == every // 2:
            time.sleep(0.05)
        return torch.full((16,), float(index % 7)), index % 4

layers = [layer for _ in range(6) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
begun = []
for inputs, labels in DataLoader(Samples(), batch_size=8):
    begun.append(time.monotonic_ns())
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open(truth, "w") as out:
    json.dump({"begun": begun}, out)
"""


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--stalls", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cpu_s: dict[str, list[float]] = {"plain": [], "10": [], "all": []}
    seen: dict[str, dict[str, list[int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(PROGRAM)
        for round_number in range(options.rounds):
            for keep in cpu_s:
                seconds, seen[keep] = run(program, keep, options)
                cpu_s[keep].append(seconds)
                print(f"round {round_number}, {keep}: {seconds:.2f} s CPU", flush=True)
        ten, every = Path(folder) / "10.strobe", Path(folder) / "all.strobe"
        report_sizes(ten, every)
        report_cost(cpu_s)
        print(f"the recorder's thread: keep 10 {own_cpu_s(ten):.2f} s, keep all {own_cpu_s(every):.2f} s")
        report_counts(ten, every)
        report_stalls(ten, seen["10"], options)


def run(program: Path, keep: str, options: argparse.Namespace) -> tuple[float, dict[str, list[int]]]:
    """Run the program once; return its CPU time and what it saw itself."""
    trace, truth = program.parent / f"{keep}.strobe", program.parent / "truth.json"
    shutil.rmtree(trace, ignore_errors=True)
    words = [str(program), str(options.steps), str(options.stalls), str(truth)]
    command = [STROBE, "run", "--keep", keep, "-o", str(trace), *words]
    done = checked([sys.executable, *words] if keep == "plain" else command, program.parent)
    return done.cpu_s, json.loads(truth.read_text())


def report_sizes(ten: Path, every: Path) -> None:
    """Print bytes of both traces, and their ratio."""
    size = [sum(file.stat().st_size for file in trace.glob("*.blocks")) for trace in (ten, every)]
    print(f"bytes: keep 10 {size[0]:,}, keep all {size[1]:,}: {size[0] / size[1]:.2%} (at most 2 %)")


def report_cost(cpu_s: dict[str, list[float]]) -> None:
    """Print what either adds to the program's CPU time: medians of differences within a round."""
    added = {keep: statistics.median(np.subtract(cpu_s[keep], cpu_s["plain"])) for keep in ("10", "all")}
    ratio = added["10"] / added["all"]
    print(f"CPU added, completion and summary included: keep 10 {added['10']:.2f} s, keep all {added['all']:.2f} s")
    print(f"ratio of the two: {ratio:.2f} (at most 0.5)")


def own_cpu_s(trace: Path) -> float:
    """CPU seconds of the recorder's own thread in the main process."""
    from strobe import native

    (ended,) = native.ProcessReader(str(next(trace.glob("*.blocks"))), None).process()["end_json"]
    return float(json.loads(ended)["counters"]["own_cpu_ns"]) / 1e9


def report_counts(ten: Path, every: Path) -> None:
    """Compare how often everything ran: names of regions in call paths of both traces."""
    counts = [executions(trace) for trace in (ten, every)]
    differing = {name for name in counts[0].keys() | counts[1].keys() if counts[0][name] != counts[1][name]}
    print(f"executions: {counts[0].total():,} and {counts[1].total():,}; call paths that differ: {len(differing)}")
    for name in sorted(differing)[:10]:
        print(f"  {counts[0][name]} {counts[1][name]} {' > '.join(name)}")


def executions(trace: Path) -> Counter[tuple[str, ...]]:
    """Executions of every call path by the names along it, spans and statistics together."""
    from strobe import native

    found: Counter[tuple[str, ...]] = Counter()
    for file in trace.glob("*.blocks"):
        reader = native.ProcessReader(str(file), None)
        names = {region[0]: region[1] for region in reader.regions()}
        paths = reader.call_paths()
        chains: list[tuple[str, ...]] = []
        for parent, region in zip(paths["parent"].tolist(), paths["region"].tolist(), strict=True):
            chains.append((*(chains[parent] if parent < len(chains) else ()), names[region]))
        for location in reader.locations():
            spans = reader.spans(location["id"], -(2**62), 2**62)
            for path, count in enumerate(np.bincount(spans["call_path"], minlength=len(chains)).tolist()):
                if count:
                    found[chains[path]] += count
        folded = reader.statistics()
        for path, count in zip(folded["call_path"].tolist(), folded["count"].tolist(), strict=True):
            if count:
                found[chains[path]] += count
    return found


def report_stalls(trace: Path, truth: dict[str, list[int]], options: argparse.Namespace) -> None:
    """Count the stalls that are iterations in detail, and whose largest excess is the wait for data."""
    from strobe import native

    reader = native.ProcessReader(str(next(trace.glob("*.blocks"))), None)
    iterations, loops = reader.iterations(), reader.loops()
    begun = np.array(truth["begun"])
    step_of = np.searchsorted(begun, iterations["start_ns"])  # the data of a step come after the step has begun
    every = options.steps // options.stalls
    stalled = step_of % every == every // 2
    kept = (iterations["detail"] > 0) & (iterations["data_wait_ns"] > 30_000_000)
    print(f"accepted at iteration {loops[0]['accepted_iteration']}; {len(step_of)} iterations recorded")
    print(f"stalls in detail: {np.count_nonzero(stalled & kept)} of {options.stalls}")
    print(f"iterations in detail: {np.count_nonzero(iterations['detail'])}")


if __name__ == "__main__":
    main()
