"""Budget, throttling and counters in C and MPI programs: no Python is there to keep to them."""

import shutil
import subprocess
from pathlib import Path

import pytest

import strobe
from tests.record.test_functions import calls
from tests.record.test_mpi import Mpi
from tests.record.workshop import STROBE, Workshop, environment, quality_of

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

LEAVES = 3_000_000
STEPS = ("fewer_iterations", "hot_functions", "statistics_only")
PROGRAMS = {
    # What is called often and is short (leaf; down, which calls itself), in two threads and a child.
    "hot.c": f"""\
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int leaf(int n) {{ return n & 1; }}
    int down(int n) {{ return n ? 1 + down(n - 1) : leaf(n); }}
    int batch(int n) {{ int sum = 0; for (int i = 0; i < {LEAVES // 1000}; i++) sum += leaf(i) + n; return sum; }}
    int turn(void) {{ int sum = batch(0); for (int i = 0; i < 100; i++) sum += down(5); return sum; }}
    void* thread(void* sum) {{ for (int i = 0; i < 500; i++) *(int*)sum += turn(); return 0; }}
    int in_child(void) {{ int sum = 0; for (int i = 0; i < 4000; i++) sum += leaf(i) + down(1); return sum; }}
    int main(void) {{
      pthread_t other;
      int sum = 0, of_other = 0;
      for (int i = 0; i < 500; i++) sum += turn();
      pthread_create(&other, 0, thread, &of_other);
      pthread_join(other, 0);
      if (fork() == 0) {{ printf("%d\\n", in_child()); exit(0); }}
      wait(0);
      printf("%d\\n", sum + of_other);
      return 4;
    }}
    """,
    # No loop that repeats: everything would be written. From one step of the budget to the next there is more room than
    # a full ring takes, which a recorder that gets no core writes at once.
    "growing.c": """\
    #include <stdio.h>
    int leaf(int n) { return n & 1; }
    int branch(int n) { return leaf(n); }
    int main(void) {
      int done = 0;
      for (int width = 1; done < 6000000; done += width, width += 7)
        for (int i = 0; i < width; i++) branch(i);
      printf("%d\\n", done);
      return 0;
    }
    """,
    # Two seconds and some, in calls: the budget is looked at once a second.
    "busy.c": """\
    #include <stdio.h>
    #include <sys/mman.h>
    #include <time.h>
    int leaf(int n) { return n & 1; }
    int branch(int n) { return leaf(n); }
    void touch(void) {
      char* pages = mmap(0, 3000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      madvise(pages, 3000 * 4096, MADV_NOHUGEPAGE);
      for (int i = 0; i < 3000; i++) pages[i * 4096] = 1;
    }
    int main(void) {
      long called = 0;
      char bytes[8192] = "";
      struct timespec since, now;
      FILE* file = fopen("written", "w");
      clock_gettime(CLOCK_MONOTONIC, &since);
      do {
        for (int i = 0; i < 1000; i++) called += branch(i) | 1;
        if (called == 1000000) touch();
        if (called <= 1000000) fwrite(bytes, 1, sizeof bytes, file);
        clock_gettime(CLOCK_MONOTONIC, &now);
      } while ((now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000 < 2500);
      fclose(file);
      printf("%ld\\n", called);
      return 0;
    }
    """,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs, each built by `strobe cc`."""
    workshop = Workshop(tmp_path_factory.mktemp("built"))
    lines = []
    for name, code in PROGRAMS.items():
        workshop.write(name, code)
        lines.append(f"gcc -O1 -fno-inline -fno-optimize-sibling-calls {name} -o {name.removesuffix('.c')} -pthread")
    cache = {"STROBE_CACHE": str(workshop.folder / "cache")}
    command = [STROBE, "cc", "--", "sh", "-e", "-c", "\n".join(lines)]
    subprocess.run(command, cwd=workshop.folder, env=environment(cache), check=True, capture_output=True)
    return workshop.folder


def test_what_is_hot_and_short_is_throttled_in_every_thread_and_child(workshop: Workshop, built: Path) -> None:
    program = str(built / "hot")
    plain = workshop.plain("--", program)
    recorded = workshop.recorded("--throttle", "5000:1s", "--", program)
    assert recorded.visible == plain.visible
    assert plain.returncode == 4
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
        quality = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
        places = [what for what in quality if str(what).startswith("throttled_after")]
    # A thread of the recorder counts, which sees what was called up to a full ring later.
    assert 5000 <= sum(n for (name, _), n in found.items() if name == "leaf") < 200_000
    downs = sum(n for (name, _), n in found.items() if name == "down")
    assert downs % 6 == 0  # whole recursions, or nothing
    assert 5000 <= downs < 200_000  # of 600 000
    # What is called less often is all there.
    assert sum(n for (name, _), n in found.items() if name == "batch") == 1000
    assert (found["main", ""], found["thread", ""], found["in_child", ""]) == (1, 1, 1)
    assert found["leaf", "in_child"] == found["down", "in_child"] == 0
    assert quality["functions_throttled"] == 2
    assert len(places) >= 2
    assert quality.get("leaves_unmatched", 0) == quality.get("spans_cut", 0) == 0


def test_a_trace_of_a_c_program_stays_within_its_size(workshop: Workshop, built: Path) -> None:
    done = workshop.recorded("--max-size", "4M", "--", str(built / "growing"))
    assert (done.stderr, done.returncode) == ("", 0)
    assert sum(path.stat().st_size for path in workshop.trace.glob("*.blocks")) <= 4 << 20
    counted = {what: quality_of(workshop.trace, f"budget_{what}") for what in STEPS}
    assert counted == {"fewer_iterations": 1, "hot_functions": 0, "statistics_only": 1}


def test_a_recorder_that_is_too_dear_gives_up_detail_and_chosen_counters_are_there(
    workshop: Workshop, built: Path
) -> None:
    options = ("--max-overhead", "0.01%", "--counters", "cpu, faults,io")
    done = workshop.recorded(*options, "--", str(built / "busy"))
    assert (done.stderr, done.returncode) == ("", 0)
    assert quality_of(workshop.trace, "budget_fewer_iterations") == 1
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select metric, time_ns, value from metrics order by time_ns").to_arrow().to_pylist()
    found = {str(row["metric"]) for row in rows if "budget" not in str(row["metric"])}
    cpu = {f"cpu {who}" for who in ("main thread", "python threads", "compute threads", "other threads", "strobe")}
    cpu |= {"cpu ended child processes", "cpu user", "cpu system", "cores of the process"}
    cpu |= {f"system time {who}" for who in ("main thread", "strobe")} | {"strobe waits for a core"}
    faults, io = {"minor page faults", "major page faults"}, {"read", "written", "read from disk", "written to disk"}
    io |= {"read calls", "write calls"}
    assert found == cpu | faults | io | {"main thread waits for a core"}
    times = sorted({row["time_ns"] for row in rows if row["metric"] == "cpu main thread"})

    def total(metric: str) -> float:
        """Sum over time of a rate, without the first reading, which gives none."""
        since = dict(zip(times[1:], times, strict=False))
        read = [row for row in rows if row["metric"] == metric and row["time_ns"] in since]
        return sum(row["value"] * (row["time_ns"] - since[row["time_ns"]]) / 1e9 for row in read)

    assert total("minor page faults") >= 3000
    assert total("written") >= 1_000_000
    assert total("cpu main thread") >= 0.2


@pytest.mark.mpi
def test_a_budget_and_counters_hold_in_a_c_program_that_calls_mpi(workshop: Workshop) -> None:
    mpi = Mpi("mpich", workshop)
    workshop.write(
        "barriers.c",
        """\
        #include <mpi.h>
        int main(int argc, char** argv) {
          int done = 0;
          MPI_Init(&argc, &argv);
          for (int width = 1; done < 3000000; done += width, width += 7)
            for (int i = 0; i < width; i++) MPI_Barrier(MPI_COMM_SELF);
          MPI_Barrier(MPI_COMM_WORLD);
          MPI_Finalize();
          return 0;
        }
        """,
    )
    command = [str(mpi.home / "bin/mpicc"), "-O1", "barriers.c", "-o", "barriers"]
    subprocess.run(command, cwd=workshop.folder, check=True, capture_output=True)
    options = ("--max-size", "1M", "--counters", "memory", "--throttle", "100:1s")
    done = mpi.run(workshop.command(*options, "--", *mpi.mpirun(1, "./barriers")))
    assert (done.stderr, done.returncode) == ("", 0)
    assert quality_of(workshop.trace, "budget_fewer_iterations") == 1
    assert quality_of(workshop.trace, "functions_throttled") == 0  # calls of MPI never are
    metrics = strobe.open(workshop.trace).sql("select distinct metric from metrics").to_pylist()
    names = {str(row["metric"]) for row in metrics if "budget" not in str(row["metric"])}
    assert names == {"resident memory", "peak resident memory"}
