"""Questions about GPUs, beside Holistic Trace Analysis (traceinsight) on the same events.

./dev bench analyses FILE.json.gz [--events 1000000] [--hta PYTHON]    a Python that has traceinsight

Repeats the events of a PyTorch profile. Measures CPU seconds of opening the file for the first time, and of each
question in its own process, with the peak memory. HTA links kernels to their launches while it loads, strobe when a
question needs it: so the first ratio is of opening and question together; the second is of the questions alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from import_chrome import repeat
from measure import table

QUESTIONS = (
    "overlap", "idle", "kernels", "calls", "copies", "launches", "ranges", "operators", "step_time", "step_trace",
    "data_pipeline", "gemm", "gemm_merging", "sequences", "stragglers", "memory", "critical_path",
)  # fmt: skip
PEAK = """
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({name: [seconds, peak / 1024] for name, seconds in spent.items()}))
"""
STROBE = """
import json, sys, time
import strobe
from strobe.api import imports
begun = time.process_time()
trace = strobe.open(sys.argv[1])
if sys.argv[2] == "opening":
    spent = {"opening": time.process_time() - begun}
else:
    # Excludes what any first question pays once: Arrow, the engine, the list of locations.
    trace.sql("select count(*) from locations")
    begun = time.process_time()
    len(trace.ask(sys.argv[2]))
    spent = {sys.argv[2]: time.process_time() - begun}
"""
HTA = """
import json, os, sys, time
from hta.trace_analysis import TraceAnalysis
begun = time.process_time()
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
spent = {"opening": time.process_time() - begun}
print(f"HTA, opening: {spent['opening']:.2f} s", file=sys.stderr, flush=True)
def measure(name, *questions):
    if name not in sys.argv[2:]: return
    begun = time.process_time()
    try:
        for question in questions: question()
    except Exception as error:
        print(f"HTA, {name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return
    spent[name] = time.process_time() - begun
    print(f"HTA, {name}: {spent[name]:.2f} s", file=sys.stderr, flush=True)
quiet = {"visualize": False}
one = {"ranks": [0]}
measure("overlap", lambda: found.get_temporal_breakdown(**quiet), lambda: found.get_comm_comp_overlap(**quiet))
measure("idle", lambda: found.get_idle_time_breakdown(**one, **quiet))
measure("kernels", lambda: found.get_gpu_kernel_breakdown(**quiet))
measure("launches", lambda: found.get_cuda_kernel_launch_stats(**one, **quiet),
        lambda: found.get_queue_length_summary(**one))
measure("copies", lambda: found.get_memory_bw_summary(**one))
measure("ranges", lambda: found.get_gpu_user_annotation_breakdown(**quiet))
measure("sequences", lambda: found.get_frequent_cuda_kernel_sequences(
    "aten::", os.path.dirname(sys.argv[1]), rank=0, visualize=False))
measure("critical_path", lambda: found.critical_path_analysis(0, "ProfilerStep", 0))
"""

Spent = Mapping[str, tuple[float, float]]


def answers(python: str, program: str, *arguments: str) -> Spent:
    """Return CPU seconds and peak MiB by question. Its messages go to stderr."""
    done = subprocess.run([python, "-c", program + PEAK, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return {name: (seconds, mib) for name, (seconds, mib) in json.loads(done.stdout.splitlines()[-1]).items()}


def _ratio(theirs: Spent, ours: Spent, name: str, opening: bool) -> str:
    if name not in theirs:
        return ""
    sums = [spent[name][0] + (spent["opening"][0] if opening and name != "opening" else 0) for spent in (theirs, ours)]
    return f"{sums[0] / sums[1]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--hta", help="a Python that has traceinsight")
    parser.add_argument("--questions", nargs="+", default=QUESTIONS, choices=QUESTIONS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        events = repeat(options.file, path, options.events * 250)
        print(f"{events} events, {path.stat().st_size / 1e6:.0f} MB of JSON", flush=True)
        ours = dict(answers(sys.executable, STROBE, os.fspath(path), "opening"))
        for name in options.questions:
            ours |= answers(sys.executable, STROBE, os.fspath(path), name)
            print(f"{name}: {ours[name][0]:.2f} s", file=sys.stderr, flush=True)
        theirs = answers(options.hta, HTA, os.fspath(path), *options.questions) if options.hta else {}
        rows = [
            {
                "question": name,
                "strobe, s": f"{seconds:.3f}",
                "peak, MiB": f"{mib:.0f}",
                "HTA, s": f"{theirs[name][0]:.3f}" if name in theirs else "",
                "ratio": _ratio(theirs, ours, name, opening=True),
                "alone": _ratio(theirs, ours, name, opening=False),
            }
            for name, (seconds, mib) in ours.items()
        ]
        print(table(rows))
        if theirs:
            print(f"peak memory of HTA: {theirs['opening'][1]:.0f} MiB")


if __name__ == "__main__":
    main()
