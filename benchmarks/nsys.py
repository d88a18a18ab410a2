"""What importing an Nsight Systems export costs: CPU time a row, and peak memory.

By hand: python benchmarks/nsys.py FILE

The tables of kernels and calls of FILE are repeated, later each time, until there are --rows kernels; the rest is kept.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

_IMPORT = "import sys, strobe; strobe.open(sys.argv[1])"
_REPEATED = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")


def replicated(source: Path, to: Path, rows: int) -> None:
    """Write a copy of an export with at least so many kernels."""
    shutil.copyfile(source, to)
    to.chmod(0o644)
    with sqlite3.connect(to) as database:
        (kernels,) = database.execute(f"SELECT count(*) FROM {_REPEATED[0]}").fetchone()
        (last,) = database.execute(f"SELECT max(end) FROM {_REPEATED[1]}").fetchone()
        times = -(-rows // kernels)
        for table in _REPEATED:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            shifted = [
                f'"{each}" + n * {last}' if each in ("start", "end") else
                f'"{each}" + n * 1000000' if each == "correlationId" else f'"{each}"'
                for each in columns
            ]  # fmt: skip
            database.execute(
                f"INSERT INTO {table} WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted "
                f"WHERE n + 1 < {times}) SELECT {', '.join(shifted)} FROM counted, (SELECT * FROM {table})"
            )


def measured(path: Path, cache: Path) -> tuple[float, float]:
    """Import in a process of its own; return its CPU seconds and its peak memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "STROBE_CACHE": str(cache)}
    command = ["/usr/bin/env", sys.executable, "-c", _IMPORT, str(path)]
    # The peak of a child counts from its fork: a bare shell in between keeps ours out of it.
    subprocess.run(command, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, after.ru_maxrss / 1024


def main() -> None:
    """Replicate, import, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.sqlite"
        replicated(options.file, large, options.rows)
        with sqlite3.connect(large) as database:
            counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _REPEATED]
        small_s, small_mib = measured(options.file, Path(folder) / "small-cache")
        seconds, mib = measured(large, Path(folder) / "large-cache")
        print(f"{options.file.name}: {small_s:.2f} s CPU, {small_mib:.0f} MiB")
        print(f"{counts[0]} kernels and {counts[1]} calls, {large.stat().st_size >> 20} MiB:")
        print(f"{seconds:.1f} s CPU, {(seconds - small_s) / sum(counts) * 1e6:.2f} us a row, {mib:.0f} MiB at most")


if __name__ == "__main__":
    main()
