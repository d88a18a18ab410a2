"""What finding loops and folding take, seen from outside: a program with more regions than any table holds."""

from pathlib import Path

import pytest

from tests.record.workshop import Workshop

PROGRAM = """
    import random, strobe, time

    names = [f"region {i}" for i in range(70_000)]
    random.seed(1)
    for _ in range(2):
        random.shuffle(names)
        for name in names:
            with strobe.region(name):
                pass
    time.sleep(0.2)
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_mb(workshop: Workshop, keep: str) -> float:
    """The most memory that the program had resident."""
    outcome = workshop.recorded("--keep", keep, "-o", str(workshop.folder / f"{keep}.strobe"), "program.py")
    assert outcome.returncode == 0
    return int(outcome.stdout) * 1024 / 1e6


@pytest.mark.parametrize(("keep", "most_mb"), [("10", 22), ("0", 34)])
def test_memory_is_bounded_whatever_the_program_calls(tmp_path: Path, keep: str, most_mb: float) -> None:
    # About 12 and 18 MB; the native test of the same name counts what the tables hold. The margin is for the allocator.
    workshop = Workshop(tmp_path)
    workshop.write("program.py", PROGRAM)
    assert peak_mb(workshop, keep) - peak_mb(workshop, "all") < most_mb
