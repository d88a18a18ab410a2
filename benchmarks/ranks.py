"""Jobs of many ranks: CPU time of opening, of the steps, waits and efficiencies, and the page Ranks in Chromium.

./dev bench ranks [--ranks 4 200 10000] [--steps 50] [--keep FOLDER]

Each rank computes, exchanges a message with its neighbours and runs an all-reduce in each step, as OTF2 that strobe
imports once; this is not measured. A rank in a hundred is slower. `--keep`: where the traces are, for the next time.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from measure import STROBE, checked, folder, table
from playwright.sync_api import Browser, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
QUESTIONS = ("info", "steps", "waits", "efficiency")
SEEN = {
    "what ranks did": ".bar-row",
    "who waited for whom": "[aria-label*='for each other']",
    "efficiencies": ".factors",
    "steps of all ranks": "[aria-label*='steps of']",
}
_CHUNK_BYTES = 1 << 18  # the least: each rank has some


def write(folder: Path, ranks: int, steps: int) -> Path:
    """Write an archive of a job; return its anchor."""
    import otf2
    from otf2.enums import (
        CollectiveOp,
        CollectiveRoot,
        GroupType,
        LocationGroupType,
        LocationType,
        Paradigm,
        RegionRole,
    )

    chunks = {"chunk_size_events": _CHUNK_BYTES, "chunk_size_definitions": _CHUNK_BYTES}
    with otf2.writer.open(str(folder), timer_resolution=10**9, **chunks) as out:
        of = out.definitions
        machine = of.system_tree_node("cluster", class_name="machine")
        nodes = [of.system_tree_node(f"node{at}", class_name="node", parent=machine) for at in range(-(-ranks // 64))]
        user = {"region_role": RegionRole.FUNCTION, "paradigm": Paradigm.USER}
        main, step, compute = (of.region(name, **user) for name in ("main", "step", "compute"))
        mpi = Paradigm.MPI
        exchange = of.region("MPI_Sendrecv", region_role=RegionRole.POINT2POINT, paradigm=mpi)
        reduce = of.region("MPI_Allreduce", region_role=RegionRole.COLL_ALL2ALL, paradigm=mpi)
        threads = []
        for rank in range(ranks):
            group = of.location_group(
                f"MPI Rank {rank}",
                location_group_type=LocationGroupType.PROCESS,
                system_tree_parent=nodes[rank // 64],
                creating_location_group=None,
            )
            threads.append(of.location("Master thread", type=LocationType.CPU_THREAD, group=group))
        of.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=mpi, members=threads)
        group = of.group("", group_type=GroupType.COMM_GROUP, paradigm=mpi, members=threads)
        world = of.comm("MPI_COMM_WORLD", group=group, parent=None)
        for rank, thread in enumerate(threads):
            chance = random.Random(rank)
            events = out.event_writer_from_location(thread)
            events.enter(1000, main)
            for number in range(steps):
                begin = 2000 + 1_000_000 * number
                computed = begin + 500_000 + chance.randrange(100_000) + 200_000 * (rank % 100 == 7)
                events.enter(begin, step)
                events.enter(begin + 100, compute)
                events.leave(computed, compute)
                events.enter(computed + 50, exchange)
                events.mpi_send(computed + 60, (rank + 1) % ranks, world, 0, 8192)
                events.mpi_recv(begin + 850_000 + rank % 1000, (rank - 1) % ranks, world, 0, 8192)
                events.leave(begin + 850_000 + rank % 1000 + 10, exchange)
                events.enter(begin + 860_000 + chance.randrange(5000), reduce)
                events.mpi_collective_begin(begin + 866_000)
                events.mpi_collective_end(begin + 900_000, CollectiveOp.ALLREDUCE, world, CollectiveRoot.NONE, 8, 8)
                events.leave(begin + 900_100, reduce)
                events.leave(begin + 990_000, step)
            events.leave(3000 + 1_000_000 * steps, main)
    return folder / "traces.otf2"


def seconds(browser: Browser, trace: Path) -> Iterator[tuple[str, float]]:
    """Of `strobe view`: until it listens, and what the page then takes, for the first time and again."""
    for time_of in ("first", "second"):
        begun = time.monotonic()
        command = [STROBE, "view", str(trace), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            yield f"{time_of} opening: until the server listens", time.monotonic() - begun
            page = browser.new_page(viewport={"width": 1400, "height": 1500})
            begun = time.monotonic()
            page.goto(f"{address}#page=ranks")
            for what, seen in SEEN.items():
                page.locator(seen).first.wait_for(timeout=1e6)
                yield f"{time_of} opening: {what}", time.monotonic() - begun
            page.close()
            server.terminate()


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 200, 10_000])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--questions", nargs="*", default=QUESTIONS)
    options = parser.parse_args()
    with folder() as place, sync_playwright() as playwright:
        env = {"STROBE_CACHE": str(place / "cache")}
        os.environ |= env
        rows = []
        for ranks in options.ranks:
            archive = (options.keep or place).resolve() / f"ranks-{ranks}-{options.steps}"
            anchor = archive / "traces.otf2" if archive.exists() else write(archive, ranks, options.steps)
            checked([STROBE, "info", str(anchor)], place)  # which imports it
            for question in options.questions:
                used = checked([STROBE, question, str(anchor)], place).cpu_s
                rows.append({"ranks": ranks, "what": f"`strobe {question}`", "seconds": f"{used:.1f} CPU"})
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            rows += [
                {"ranks": ranks, "what": what, "seconds": f"{took:.2f} wall"} for what, took in seconds(browser, anchor)
            ]
            browser.close()
        print(table(rows))


if __name__ == "__main__":
    main()
