"""What the default preset adds to whole programs, and what a recorder that is loaded but off adds.

    ./dev bench presets [--rounds 5] [--programs training numpy server mpi]

Four programs: a PyTorch training, a NumPy program, an asyncio server with its clients, and 8 ranks of mpi4py. plain,
`--start paused` (loaded, off) and the default preset run in turn in every round, each with its work done once and
three times; what is compared is the difference, so that starting and ending are apart: they are paid once. `perf stat`
counts the program's own processes (all their threads, the recorder's too), ranks summed: CPU time, and in user mode
instructions and cycles. Instructions hardly depend on what else the machine does; CPU time and cycles do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from statistics import median

from measure import ROOT, STROBE, checked, folder, interleaved, table

EVENTS = {"CPU time": "task-clock", "instructions": "instructions:u", "cycles": "cycles:u"}
UNITS = {"s": 1e3, "e9": 1e9}
TIMES = 1, 3  # how often a program does its work
# Counts one process, and each rank of a program, from its start to its end.
COUNTED = f"""
exec perf stat -x, -o counted-$$ -e {",".join(EVENTS.values())} "$@"
"""
TRAINING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = DataLoader(TensorDataset(torch.randn(1920, 3, 32, 32), torch.randint(0, 10, (1920,))), batch_size=32)
def work():
    for images, labels in data:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
NUMPY = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
grid = np.random.default_rng(1).random((512, 512))
def laplace(a):
    return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]
def step(a):
    a[1:-1, 1:-1] += 0.1 * laplace(a)
    return float(np.abs(a).max())
def work():
    for _ in range(600):
        step(grid)
"""
SERVER = """
import asyncio, json
def respond(request):
    words = request["text"].split()
    return {"id": request["id"], "words": len(words), "longest": max(words, key=len), "upper": request["text"].upper()}
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(json.dumps(respond(json.loads(line))).encode() + b"\\n")
        await writer.drain()
    writer.close()
async def client(port, requests):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(requests):
        text = "the quick brown fox jumps over the lazy dog " * 8
        writer.write(json.dumps({"id": number, "text": text}).encode() + b"\\n")
        await writer.drain()
        assert json.loads(await reader.readline())["id"] == number
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port, 1500) for _ in range(8)))
    server.close()
def work():
    asyncio.run(main())
"""
RANKS = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
field = np.random.default_rng(rank).random((514, 512))
def exchange(a):
    up, down = (rank - 1) % size, (rank + 1) % size
    world.Sendrecv(a[1], up, 1, a[-1], down, 1)
    world.Sendrecv(a[-2], down, 2, a[0], up, 2)
def relax(a):
    a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return float(np.abs(a).max())
def work():
    for n in range(300):
        exchange(field)
        world.allreduce(relax(field), MPI.MAX)
"""
PROGRAMS = {"training": TRAINING, "numpy": NUMPY, "server": SERVER, "mpi": RANKS}
WAYS = {"plain": None, "off": ["--start", "paused"], "default": []}


def command(program: str, way: str, times: int) -> list[str]:
    """How a program is started; ranks by MPICH's launcher."""
    options = WAYS[way]
    run = ["sh", "counted.sh", sys.executable, "program.py", str(times)]
    if program == "mpi":
        launcher = ROOT / ".venv/mpich/bin/mpirun"
        if not launcher.exists():
            raise SystemExit("no MPICH in .venv/mpich: ./dev bench corpus makes it")
        run = [str(launcher), "-n", "8", *run]
    return run if options is None else [STROBE, "run", "-q", "-o", "trace", *options, "--", *run]


def counts_of(program: str, way: str, times: int, place: Path) -> list[float]:
    """What perf counted in one run, all ranks together: CPU milliseconds, instructions, cycles."""
    library = str(ROOT / ".venv/mpich/lib/libmpi.so.12")
    checked(command(program, way, times), place, {"MPI4PY_LIBMPI": library} if program == "mpi" else None)
    files = list(place.glob("counted-*"))
    assert len(files) == (8 if program == "mpi" else 1), files
    sums = [0.0] * len(EVENTS)
    for file in files:
        lines = [line.split(",") for line in file.read_text().splitlines() if "," in line]
        for number, line in enumerate(lines):
            if not line[0].replace(".", "", 1).isdigit():
                raise SystemExit(f"perf cannot count {line[2]} here: {line[0]}")
            sums[number] += float(line[0])
        file.unlink()
    shutil.rmtree(place / "trace.strobe", ignore_errors=True)
    return sums


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    options = parser.parse_args()
    if not shutil.which("perf"):
        raise SystemExit("presets needs perf (Debian: linux-perf)")
    rows = []
    for program in options.programs:
        found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
        with folder() as place:
            (place / "counted.sh").write_text(COUNTED)
            (place / "program.py").write_text(
                PROGRAMS[program] + "import sys\nfor _ in range(int(sys.argv[1])): work()\n"
            )
            for _, way in interleaved(options.rounds, list(WAYS)):
                once, thrice = (counts_of(program, way, times, place) for times in TIMES)
                found[way].append([more - less for more, less in zip(thrice, once, strict=True)])
        for number, what in enumerate(EVENTS):
            plain = [counts[number] for counts in found["plain"]]
            unit = "s" if what == "CPU time" else "e9"
            row: dict[str, object] = {
                "program": program,
                "of": what,
                "plain": f"{median(plain) / UNITS[unit]:.2f} {unit}",
            }
            # How much two runs of the same program differ: a ratio closer to 1 than that means nothing.
            row["spread of plain"] = f"{(max(plain) - min(plain)) / median(plain):.1%}"
            for way in ("off", "default"):
                mine = [counts[number] for counts in found[way]]
                least = min(mine) / min(plain) - 1
                row[f"added, {way}"] = f"{median(mine) / median(plain) - 1:+.1%} (of minima {least:+.1%})"
            rows.append(row)
        print(json.dumps({"program": program, **found}), file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main()
