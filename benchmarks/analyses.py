"""Questions about GPUs, beside Holistic Trace Analysis (traceinsight) on the same events.

./dev bench analyses FILE.json.gz [--events 1000000] [--hta PYTHON]    a Python that has traceinsight

The events of a PyTorch profile over and over. CPU seconds of opening the file for the first time, and of each question
after that. HTA links kernels to their launches while it loads, strobe when a question needs it: so the ratio is of
opening and question together. Peak memory is of the whole process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from import_chrome import repeat
from measure import table

PEAK = """
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([spent, peak / 1024]))
"""
STROBE = """
import json, sys, time
import strobe
from strobe.store import imports, trace
begun = time.process_time()
trace = strobe.open(sys.argv[1])
spent = {"opening": time.process_time() - begun}
for name in ("overlap", "idle", "launches", "copies", "sequences", "memory"):
    begun = time.process_time()
    len(trace.ask(name))
    spent[name] = time.process_time() - begun
"""
HTA = """
import json, os, sys, time
from hta.trace_analysis import TraceAnalysis
begun = time.process_time()
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
spent = {"opening": time.process_time() - begun}
def measure(name, *questions):
    begun = time.process_time()
    for question in questions: question()
    spent[name] = time.process_time() - begun
quiet = {"visualize": False}
one = {"ranks": [0]}
measure("overlap", lambda: found.get_temporal_breakdown(**quiet), lambda: found.get_comm_comp_overlap(**quiet))
measure("idle", lambda: found.get_idle_time_breakdown(**one, **quiet))
measure("kernels", lambda: found.get_gpu_kernel_breakdown(**quiet))
measure("launches", lambda: found.get_cuda_kernel_launch_stats(**one, **quiet),
        lambda: found.get_queue_length_summary(**one))
measure("copies", lambda: found.get_memory_bw_summary(**one))
measure("sequences", lambda: found.get_frequent_cuda_kernel_sequences(
    "aten::", os.path.dirname(sys.argv[1]), rank=0, visualize=False))
"""


def answers(python: str, program: str, path: Path) -> tuple[dict[str, float], float]:
    """Return CPU seconds by question, and peak MiB."""
    done = subprocess.run([python, "-c", program + PEAK, str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    spent, peak = json.loads(done.stdout.splitlines()[-1])
    return spent, peak


def _with_opening(spent: dict[str, float], name: str) -> float:
    return spent["opening"] + (spent[name] if name != "opening" else 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--hta", help="a Python that has traceinsight")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        events = repeat(options.file, path, options.events * 250)
        print(f"{events} events, {path.stat().st_size / 1e6:.0f} MB of JSON")
        ours, our_peak = answers(sys.executable, STROBE, path)
        theirs, their_peak = answers(options.hta, HTA, path) if options.hta else ({}, float("nan"))
        rows = [
            {
                "question": name,
                "strobe, s": f"{spent:.3f}",
                "HTA, s": f"{theirs[name]:.3f}" if name in theirs else "",
                "ratio": f"{_with_opening(theirs, name) / _with_opening(ours, name):.0f}" if name in theirs else "",
            }
            for name, spent in ours.items()
        ]
        print(table(rows))
        print(f"peak memory with opening: {our_peak:.0f} MiB, HTA {their_peak:.0f} MiB")


if __name__ == "__main__":
    main()
