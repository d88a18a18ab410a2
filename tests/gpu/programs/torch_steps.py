"""Steps of verify.sh with PyTorch: `python torch_steps.py NAME OUT`."""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from verifying import (
    HERE,
    QUICK,
    check,
    figure,
    kernels,
    main,
    need_cupti,
    need_gpu,
    need_torch,
    ran,
    recorded,
    rows_of,
    step,
)

TRAIN = str(HERE / "train.py")
STEPS = "10" if QUICK else "30"


def by_name(rows: list[tuple[str, float]]) -> dict[str, tuple[int, float]]:
    """Count and sum of the ns of each name."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for name, ns in rows:
        count, total = found[name]
        found[name] = (count + 1, total + ns)
    return dict(found)


def of_trace(folder: str) -> list[dict[str, Any]]:
    """What GPUs did, in a trace of train.py, without what it does before it begins to measure."""
    import strobe

    return kernels(strobe.open(folder))


def is_kernel(name: str) -> bool:
    """Neither a copy nor a set."""
    return not name.startswith(("Memcpy", "Memset"))


@step
def training() -> None:
    """A training's kernels, against CUDA's events and against torch.profiler in the same training."""
    import strobe

    need_torch(), need_gpu(), need_cupti()
    done = recorded("train.strobe", TRAIN, STEPS, timeout=60)
    check("the training ends as it does alone", done.returncode == 0, done.stderr[-500:])
    told = rows_of(done.stdout)[-1]
    trace = strobe.open("train.strobe")
    found = kernels(trace)
    unknown = sum(each["call"] is None for each in found)
    check("every activity belongs to a call", unknown == 0, [unknown, len(found)])
    early = sum(
        each["call_start_ns"] is not None and each["start_ns"] < each["call_start_ns"] - 5_000 for each in found
    )
    check("no kernel starts before its call", early == 0, early)
    last = [each for each in found if is_kernel(each["name"])][-50:]  # the 50 products come last
    ours = last[-1]["end_ns"] - last[0]["start_ns"]
    figure("50 products, by CUDA's events", told["products_ns"], "ns")
    figure("50 products, by the trace", ours, "ns")
    check(
        "the trace agrees with CUDA's events within 2 %",
        abs(ours / told["products_ns"] - 1) < 0.02,
        ours / told["products_ns"],
    )
    regions = {row["name"] for row in trace.regions.to_arrow().to_pylist()}
    check("the range of torch.cuda.nvtx is there", "products" in regions)
    for row in trace.kernels().to_pylist()[:5]:
        figure(f"kernel {row['kernel'][:80]}", row["total_ns"], "ns")

    alone = ran(sys.executable, TRAIN, STEPS, "--kineto", "alone.json", timeout=60)
    check("torch.profiler alone works", alone.returncode == 0, alone.stderr[-300:])
    theirs = by_name([(name, ns) for name, ns in json.loads(Path("alone.json").read_text()) if is_kernel(name)])
    # The training that is measured is the last part of the program: as many kernels as the profiler has, from the end.
    count = sum(count for count, _ in theirs.values())
    names = by_name([(e["name"], e["end_ns"] - e["start_ns"]) for e in found if is_kernel(e["name"])][-count:])
    figure("kernels by torch.profiler in a run of its own", count)
    check(
        "as many of each kernel as torch.profiler has in a run of its own",
        sorted(n for n, _ in names.values()) == sorted(n for n, _ in theirs.values()),
        [len(names), len(theirs)],
    )
    total, other = sum(ns for _, ns in names.values()), sum(ns for _, ns in theirs.values())
    figure("sum of kernels, to that of torch.profiler in a run of its own", total / other)


@step
def beside_kineto() -> None:
    """strobe and torch.profiler in one process: who has what."""
    need_torch(), need_gpu(), need_cupti()
    done = recorded("both.strobe", TRAIN, STEPS, "--kineto", "both.json", timeout=40)
    check("the training ends as it does alone", done.returncode == 0, done.stderr[-500:])
    if not Path("both.json").exists():
        return
    theirs = [(name, ns) for name, ns in json.loads(Path("both.json").read_text()) if is_kernel(name)]
    every = [
        (each["name"], each["end_ns"] - each["start_ns"]) for each in of_trace("both.strobe") if is_kernel(each["name"])
    ]
    figure("kernels by torch.profiler", len(theirs))
    figure("kernels in the trace, before it began too", len(every))
    figure("what strobe says", " ".join(done.stderr.split())[-500:])
    check("torch.profiler has its kernels", len(theirs) > 0, len(theirs))
    check("the trace has its kernels", len(every) >= len(theirs), [len(every), len(theirs)])
    if theirs and len(every) >= len(theirs):
        share = sum(ns for _, ns in every[-len(theirs) :]) / sum(ns for _, ns in theirs)
        check("sums of kernels agree within 1 %", abs(share - 1) < 0.01, share)


@step
def training_overhead() -> None:
    """What a training step gains: strobe, torch.profiler, neither; medians, in turn."""
    need_torch(), need_gpu(), need_cupti()
    found: dict[str, list[float]] = {"off": [], "gpu": [], "torch.profiler": []}
    kineto = (sys.executable, TRAIN, STEPS, "--kineto", "k.json")
    for number in range(1 if QUICK else 3):  # told at once: there may be no time for the next round
        for name, run in (
            ("off", lambda: ran(sys.executable, TRAIN, STEPS)),
            ("gpu", lambda number=number: recorded(f"{number}.strobe", TRAIN, STEPS)),
            ("torch.profiler", lambda: ran(*kineto)),
        ):
            found[name].append(rows_of(run().stdout)[-1]["step_ns"])
            figure(f"training step, {name}", found[name][-1], "ns")
        figure("training step, ratio", statistics.median(found["gpu"]) / statistics.median(found["off"]))


if __name__ == "__main__":
    main()
