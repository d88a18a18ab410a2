"""Counters of processes, of regions and of the program itself, against what the program knows."""

import json
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

PROGRAM = """
import json, mmap, os, resource, threading, time
import strobe

def usage():
    u = resource.getrusage(resource.RUSAGE_THREAD)
    return [time.thread_time_ns(), u.ru_minflt, u.ru_majflt, u.ru_nvcsw, u.ru_nivcsw]

def burn(s):
    until = time.thread_time() + s
    while time.thread_time() < until:
        pass

truth = {"faults": 0}
time.sleep(0.25)                                  # the first reading gives no rates
with strobe.region("burn", n=7, half=0.5):
    before = usage()
    burn(0.2)
    pages = mmap.mmap(-1, 4096 * 2000)
    for at in range(0, len(pages), 4096):
        pages[at] = 1
    time.sleep(0.001)
    after = usage()
truth["burn"] = [b - a for a, b in zip(before, after)]
with strobe.region("not counted"):
    burn(0.01)
thread = threading.Thread(target=lambda: [strobe.step(), burn(0.8)], name="worker")
thread.start()
thread.join()
for n in range(600):                              # more than the staging area holds
    strobe.counter("loss", n / 2, "nats")
strobe.mark("epoch", 3)
with open("data", "wb") as file:
    file.write(bytes(8_000_000))
time.sleep(0.5)
pid = os.fork()
if pid == 0:
    strobe.counter("loss", -1, "nats")
    os._exit(0)
os.waitpid(pid, 0)
truth["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
truth["load"] = os.getloadavg()[0]
json.dump(truth, open("truth.json", "w"))
"""


class Counted:
    """One recording of the program, and what it says itself."""

    def __init__(self, folder: Path) -> None:
        workshop = Workshop(folder)
        workshop.write("program.py", PROGRAM)
        groups = "cpu,memory,pss,faults,io,switches,load,network,cgroup,threads,hardware"
        done = workshop.recorded("--counters", groups, "--counters-per-region", "bu*", "program.py")
        assert done.visible == ("", "", 0)
        self.truth = json.loads((folder / "truth.json").read_text())
        with strobe.open(workshop.trace) as trace:
            self.rows = (
                trace.sql("select metric as name, unit, location, process, time_ns, value from metrics order by 5")
                .to_arrow()
                .to_pylist()
            )
            self.marks = trace.sql("select count(*) as n from spans where name = 'epoch'").to_arrow().to_pylist()

    def values(self, name: str) -> list[float]:
        """Readings of a metric, of all processes."""
        return [row["value"] for row in self.rows if row["name"] == name]

    def total(self, name: str) -> float:
        """Sum over time of a metric that is a rate per second, of the first process."""
        rows = [row for row in self.rows if row["name"] == name and row["process"] == 0]
        times = sorted(
            {row["time_ns"] for row in self.rows if row["name"] == "resident memory" and row["process"] == 0}
        )
        since = dict(zip(times[1:], times, strict=False))
        return sum(row["value"] * (row["time_ns"] - since[row["time_ns"]]) / 1e9 for row in rows)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """The program, recorded once."""
    return Counted(tmp_path_factory.mktemp("counters"))


def test_what_a_region_used_is_what_the_program_measures(counted: Counted) -> None:
    cpu_ns, minor, major, voluntary, _ = counted.truth["burn"]
    assert counted.values("burn: cpu time") == pytest.approx([cpu_ns], rel=0.05)
    assert 2000 <= minor <= counted.values("burn: minor page faults")[0] <= minor + 100
    assert counted.values("burn: major page faults")[0] >= major
    assert voluntary <= counted.values("burn: voluntary switches")[0] <= voluntary + 20
    assert counted.values("not counted: cpu time") == []


def test_numbers_of_the_program_arrive_in_order_and_forked_children_have_theirs(counted: Counted) -> None:
    assert counted.values("loss") == [*(n / 2 for n in range(600)), -1]
    assert {row["unit"] for row in counted.rows if row["name"] == "loss"} == {"nats"}
    assert counted.values("epoch") == [3]
    assert counted.marks == [{"n": 1}]
    assert counted.values("burn.n") == [7]
    assert counted.values("burn.half") == [0.5]


def test_counters_of_the_process_add_up_to_what_it_did(counted: Counted) -> None:
    # What lies between the last reading and the end, or before the first, is not in them.
    assert counted.total("cpu main thread") >= 0.15
    threads = [row for row in counted.rows if row["name"] == "cpu"]
    assert {row["unit"] for row in threads} == {"cores"}
    assert all(row["location"] is not None for row in threads)
    assert max(row["value"] for row in threads) <= 1.2
    assert counted.total("minor page faults") >= 2000
    assert counted.total("written") >= 8_000_000
    assert max(counted.values("peak resident memory")) <= counted.truth["peak"]
    assert max(counted.values("peak resident memory")) >= 0.5 * counted.truth["peak"]
    assert 0 < max(counted.values("proportional memory")) <= 1.05 * max(counted.values("peak resident memory"))
    assert abs(counted.values("load of the machine")[-1] - counted.truth["load"]) < 5
    received = counted.values("received by the machine")
    assert received
    assert min(received) >= 0
