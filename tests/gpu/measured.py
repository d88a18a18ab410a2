"""A program that ran under `strobe run` with the fake GPU, while the fake NVML was asked what GPUs measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.gpu import fake_cuda
from tests.record.test_gpu_metrics import FAKES, Machine

# What the fake CUPTI says of GPU 0 of a process.
UUID = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
# Half of 132 multiprocessors have a block of 32 warps, of 64 that fit; then all of them 16: 128 registers a thread.
PROGRAM = """
import os, time
import fake_cuda, strobe
gpu = fake_cuda.Gpu()
gpu.function("wide", registers=128)
with open("pid", "w") as file:
    file.write(str(os.getpid()))
for _ in range(12):
    strobe.step()
    gpu.launch("few", grid=(66, 1, 1), block=(1024, 1, 1), ns=20_000_000)
    gpu.launch("wide", grid=(13200, 1, 1), block=(256, 1, 1), ns=30_000_000)
    gpu.memcpy(1, 1 << 20, ns=10_000_000)
    gpu.synchronize()
    time.sleep(0.03)
"""


def record(folder: Path, *gpus: Mapping[str, object], program: str = PROGRAM) -> Path:
    """Record the program on a machine with these GPUs; the driver's own log is truth.jsonl in the folder."""
    machine = Machine(folder, *gpus)
    machine.write("program.py", program)
    given = fake_cuda.environment("13.0", folder / "truth.jsonl")
    paths = f"{FAKES}:{given['PYTHONPATH']}"
    given |= {**machine.variables, "PYTHONPATH": paths}
    done = machine.recorded("--quiet", "program.py", env=given)
    assert done.visible == ("", "", 0)
    return done.trace
