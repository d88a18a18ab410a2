"""What the steps of verify.sh share: one line of results.json for each figure and each thing that must hold, what a
step needs, and strobe's own view of a recorded program.

Only the standard library, numpy, pyarrow and strobe are used, and of strobe nothing that asks with SQL: the machine
has no network.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
SKIPPED = 77  # exit code of a step that cannot run here; the reason is the last line of its output
OUT = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
QUICK = bool(os.environ.get("VERIFY_QUICK"))  # few repetitions, for a test of the script itself
STEPS: dict[str, Callable[[], None]] = {}
_failed: list[str] = []


def step(function: Callable[[], None]) -> Callable[[], None]:
    """Make a step of a function: `python FILE NAME OUT` runs it."""
    STEPS[function.__name__] = function
    return function


def main() -> None:
    """Run the step that the command line names; exit code 1 if something does not hold."""
    name = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix=f"verify_{name}_") as folder:
        os.chdir(folder)
        try:
            STEPS[name]()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "strobe":
                raise
            need_gpu()  # the better reason
            print("strobe is not there: see the step build")
            sys.exit(1)
    if _failed:
        print(f"{len(_failed)} do not hold: {'; '.join(_failed)}")
        sys.exit(1)


def _write(row: dict[str, Any]) -> None:
    line = json.dumps({"step": sys.argv[1], **row})
    print(line, flush=True)
    with (OUT / "results.json").open("a") as results:
        results.write(line + "\n")


def figure(name: str, value: object, unit: str = "") -> None:
    """Write down something measured."""
    _write({"figure": name, "value": value, "unit": unit})


def check(name: str, holds: object, found: object = None) -> None:
    """Write down whether something holds that must, and what was found."""
    _write({"check": name, "holds": bool(holds), "found": found})
    if not holds:
        _failed.append(name)


def skip(reason: str) -> NoReturn:
    """End the step: it cannot run here."""
    print(reason)
    sys.exit(SKIPPED)


def need_gpu() -> ctypes.CDLL:
    """Give the driver; skip without one, or without a GPU."""
    # A process of its own asks: this one must stay without a context.
    asks = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); r = c.cuInit(0) or c.cuDeviceGetCount("
    done = subprocess.run(
        [sys.executable, "-c", f"{asks}ctypes.byref(n)); print(r, n.value)"], capture_output=True, text=True
    )
    if done.returncode:
        skip("there is no CUDA driver: " + (done.stderr.strip().splitlines() or ["it crashed"])[-1])
    code, devices = map(int, done.stdout.split()[-2:])
    if code or not devices:
        skip(f"the CUDA driver has no GPU (cuInit or cuDeviceGetCount: {code}, GPUs: {devices})")
    return ctypes.CDLL("libcuda.so.1")


def need_cupti() -> Path:
    """Give the CUPTI that strobe would try first; skip without any."""
    from strobe.record.adapters.cuda import cupti_libraries

    found = cupti_libraries.candidates([Path(sysconfig.get_path("purelib"))], os.environ)
    if not found:
        skip("there is no libcupti: neither STROBE_CUPTI, nor a package, nor a toolkit in /usr/local")
    return found[0].path


def need_compiler() -> str:
    """Give the C compiler; skip without one."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    return compiler or skip("there is no C compiler")


def need_torch() -> Any:
    """Give torch; skip without it, or where it sees no GPU."""
    try:
        import torch
    except Exception as error:
        skip(f"torch cannot be imported: {error}")
    if not torch.cuda.is_available():
        skip("torch sees no GPU")
    return torch


def compiled(source: str, output: str, *flags: str) -> str:
    """Build one of the C programs here."""
    done = subprocess.run(
        [need_compiler(), "-O2", *flags, str(HERE / source), "-o", output, "-ldl", "-pthread"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{source} does not build: {done.stderr[-2000:]}")
    return str(Path(output).resolve())


def ran(
    *command: str, timeout: int = 60, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its output is in what is returned."""
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=os.environ | (environment or {})
    )


def recorded(trace: str, *command: str, timeout: int = 60, options: tuple[str, ...] = ("--keep", "all")) -> Any:
    """Run a command under `strobe run`."""
    line = (sys.executable, "-m", "strobe", "run", "-o", trace, "--summary", "none", *options, *command)
    return ran(*line, timeout=timeout)


def kernels(trace: Any) -> list[dict[str, Any]]:
    """Everything that GPUs did: name, kind, times of CLOCK_MONOTONIC, thread and times of the call that launched it."""
    from strobe.gpu.devices import devices
    from strobe.gpu.launches import launches

    names = {row["region"]: row["name"] for row in trace.regions.to_arrow().to_pylist()}
    threads = {row["location"]: row["thread_id"] for row in trace.locations.to_arrow().to_pylist()}
    zero = trace.zero_ns
    found = []
    for device in devices(trace):
        for work, who in launches(trace, device):
            for i in range(len(work)):
                known = int(who.call.row[i]) >= 0
                found.append(
                    {
                        "name": names[int(work.region[i])],
                        "start_ns": int(work.start_ns[i]) + zero,
                        "end_ns": int(work.end_ns[i]) + zero,
                        "call": names.get(int(who.call.region[i])),
                        "thread": threads.get(int(who.call.location[i])),
                        "call_start_ns": int(who.call.start_ns[i]) + zero if known else None,
                        "call_end_ns": int(who.call.end_ns[i]) + zero if known else None,
                    }
                )
    return sorted(found, key=lambda each: each["start_ns"])


def quality(trace: Any, what: str) -> int:
    """Give a counter of the trace's quality; 0 where it is not told."""
    return sum(row["value"] or 0 for row in trace.quality.to_pylist() if row["what"] == what)


def rows_of(lines: str) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{") and line.endswith("}")]
