"""The verdict names children that compute while the program waits, and calls that move a few bytes each."""

import re
import subprocess

import pytest

import strobe
from strobe.present.summary import summarise
from strobe.present.verdict_parts import Verdict
from tests.record.workshop import Workshop

CRUNCHER = """
    #include <stdio.h>
    #include <sys/resource.h>
    int main(void) {
      volatile unsigned long x = 1;
      for (long i = 0; i < 20000000; i++) x = x * 31 + i;
      struct rusage used;
      getrusage(RUSAGE_SELF, &used);
      printf("%ld\\n", used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec);
      return 7;
    }
"""
PROGRAM = """
    import os, subprocess

    def run_tool():
        {start}

    def tidy():
        return sum(range(30000))

    print(0)
    for step in range(30):
        run_tool()
        tidy()
"""
STARTS = {
    "subprocess": "print(subprocess.run(['./cruncher'], capture_output=True, text=True).stdout)",
    "system": "assert os.waitstatus_to_exitcode(os.system('./cruncher')) == 7",
    "popen": "print(os.popen('./cruncher').read())",
    "spawn": "pid = os.posix_spawn('./cruncher', ['cruncher'], os.environ); os.waitpid(pid, 0)",
}


def built(workshop: Workshop, name: str, code: str) -> str:
    """A program in C."""
    source = workshop.write(f"{name}.c", code)
    subprocess.run(["gcc", "-O1", "-g", str(source), "-o", str(workshop.folder / name)], check=True)
    return str(workshop.folder / name)


def verdict_of(workshop: Workshop, *words: str) -> tuple[Verdict, str]:
    """The verdict of a run, and what it printed."""
    done = workshop.recorded(*words)
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open(done.trace) as trace:
        return summarise(trace).verdict, done.stdout


@pytest.mark.parametrize("how", STARTS)
def test_a_child_that_computes_is_named_with_its_cpu_time(workshop: Workshop, how: str) -> None:
    built(workshop, "cruncher", CRUNCHER)
    program = workshop.write("main.py", PROGRAM.format(start=STARTS[how]))
    verdict, printed = verdict_of(workshop, str(program))
    assert verdict.kind == "child-bound"
    assert "child processes cruncher" in verdict.text
    assert "in run_tool (main.py:" in verdict.text
    (computed, unit) = re.findall(r", computing for ([\d.]+) (m?s) of CPU time", verdict.text)[0]
    used_us = sum(map(int, printed.split()))
    if how != "spawn":  # of the steps that were found: nearly all
        assert 0.6 * used_us <= float(computed) * (1000 if unit == "ms" else 1_000_000) <= 1.6 * used_us


def test_a_child_that_only_sleeps_is_named_as_such(workshop: Workshop) -> None:
    program = workshop.write("main.py", PROGRAM.format(start="subprocess.run(['sleep', '0.04'])"))
    verdict, _ = verdict_of(workshop, str(program))
    assert verdict.kind == "child-bound"
    assert "child processes sleep, hardly computing" in verdict.text


def test_who_started_one_child_long_ago_waits_for_none(workshop: Workshop) -> None:
    code = PROGRAM.format(start="return sum(range(1000000))").replace("print(0)", "subprocess.run(['true'])")
    verdict, _ = verdict_of(workshop, str(workshop.write("main.py", code)))
    assert verdict.kind != "child-bound"


SMALL = """
    #include <fcntl.h>
    #include <unistd.h>
    enum {{ CALLS = 400000 }};
    static void __attribute__((noinline)) emit(int fd, int i) {{
      static char bytes[65536];
      if ({call}) _exit(1);
    }}
    int main(void) {{
      int fd = open("file", O_CREAT | O_RDWR, 0644);
      if (ftruncate(fd, 3 * CALLS)) return 1;
      for (int i = 0; i < {calls}; i++) emit(fd, i);
      return 0;
    }}
"""


@pytest.mark.parametrize(
    ("call", "calls", "named"),
    [
        ("write(fd, bytes, 1 + i % 4) < 0", "CALLS", "writes of 2.5 bytes each"),
        ("read(fd, bytes, 3) != 3", "CALLS", "reads of 3 bytes each"),
        ("pwrite(fd, bytes, sizeof bytes, 0) < 0", "5000", ""),
    ],
)
def test_small_calls_are_counted(workshop: Workshop, call: str, calls: str, named: str) -> None:
    verdict, _ = verdict_of(workshop, "--", built(workshop, "small", SMALL.format(call=call, calls=calls)))
    if not named:
        assert "bytes each" not in verdict.text
        return
    assert verdict.kind == "io-bound"
    (count,) = re.findall(rf"([\d\s]+) {named}", verdict.text)
    assert int(re.sub(r"\D", "", count)) == pytest.approx(400000, rel=0.3)  # not those before the first reading
    assert "in emit (small.c:" in verdict.text
