"""Profiles that their own tools print, perf and jfr, and what these print."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import PATHS, by_path, text_file
from tests.formats.test_sampled_profiles import needs, own_by_function, written

# --- Linux perf ------------------------------------------------------------------------------------------------------

# Lines of perf 4.15 to 6.1 in their forms: with a PID, a CPU, a period or without, with kernel and inlined frames.
PERF = """# ========
# hostname : node1
# cmdline : /usr/bin/perf record -g python -X perf x.py
# ========
#
python 9/9     198791.127353:     250000 cpu-clock:ppp:{space}
\t             643 solve(std::function<void (int)>)+0x1b (/a b/app)
\t             677 step (inlined)
\t    7f2fd100ecd0 py::<module>:/a b/x.py+0xa (/tmp/perf-9.map)
\t 6ce258d4c544155 [unknown] ([unknown])

Web Content 2  9/11 [002] 198791.128290:     100000 cpu-clock:ppp:{space}
\tffffffff821e5223 xas_load+0x53 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff821e5223]
\t             677 main+0x3 (/tmp/app (deleted))

python     9/9     198791.13:          3 page-faults:{space}
\t             677 main (/tmp/app)
python     9/9     198791.14:          1 sched:sched_switch: prev_comm=swapper/2 prev_pid=0
\t             677 main (/tmp/app)

python     9/9     198791.15:     250000 cpu-clock:ppp:{space}

nothing that perf writes
""".replace("{space}", " ")


def test_every_event_of_perf_script_counts_for_its_stack_and_thread(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "x.txt", PERF))
    columns = "thread, path, count, total_ns, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("Web Content 2 9/11", "main", 1, 100_000, 0),
        ("Web Content 2 9/11", "main;xas_load", 1, 100_000, 100_000),
        ("python 9", "[unknown]", 1, 250_000, 0),
        ("python 9", "[unknown];<module>", 1, 250_000, 0),
        ("python 9", "[unknown];<module>;step", 1, 250_000, 0),
        ("python 9", "[unknown];<module>;step;solve(std::function<void (int)>)", 1, 250_000, 250_000),
        ("python 9", "main", 0, 0, 0),
    ]
    metrics = trace.sql("select metric, sum(self_value) from path_metrics where self_value > 0 group by 1 order by 1")
    assert metrics.rows() == [
        ("page-faults", 3.0),
        ("samples", 2.0),
        ("sched:sched_switch", 1.0),
    ]
    assert trace.sql("select name, file, module from regions where paradigm = 'python' or name = 'main'").rows() == [
        ("<module>", "/a b/x.py", ""),
        ("main", "", "/tmp/app"),
    ]
    counted = quality(trace)
    assert (counted["samples_without_stack"], counted["frames_without_function"]) == (1, 1)
    assert (counted["labels_not_kept"], counted["lines_not_understood"]) == (2, 1)


def test_perf_without_clock_events_counts_samples(tmp_path: Path) -> None:
    text = """swapper     0 [001]     2001 cycles:  ffff08 idle+0x1 ([kernel.kallsyms])
 my app    12 7.000001:       99 cycles:u:     51d main (/bin/x)
 my app    12 7.000002:        1 cycles:u:     51d main (/bin/x)
"""
    trace = strobe.open(text_file(tmp_path / "x", text))
    assert by_path(trace, "thread, count, self_ns") == {"idle": ["swapper 0", 1, 1], "main": ["my app 12", 2, 2]}
    metrics = trace.sql("select metric, self_value from path_metrics where self_value > 0 order by all").rows()
    assert metrics == [("cycles", 2001.0), ("cycles:u", 100.0), ("samples", 1.0), ("samples", 2.0)]
    assert quality(trace)["weights_are_no_time"] == 2


def test_events_of_perf_without_periods_are_counted_beside_the_clock(tmp_path: Path) -> None:
    text = """a 1 1.5: 250000 cpu-clock:  51d main (/bin/x)
a 1 1.6: page-faults:  51d main (/bin/x)
a 1 1.7: page-faults:  51d main (/bin/x)
"""
    trace = strobe.open(text_file(tmp_path / "x", text))
    assert by_path(trace, "count, self_ns") == {"main": [1, 250_000]}
    metrics = trace.sql("select metric, unit, self_value from path_metrics order by 1").rows()
    assert metrics == [("page-faults", "samples", 2.0), ("samples", "count", 1.0)]


def test_ever_new_names_of_events_and_threads_take_no_ever_new_room(tmp_path: Path) -> None:
    lines = (f"comm{n} 1 1.5: 2 event{n}:  51d main (/bin/x)\n" for n in range(1000))
    trace = strobe.open(text_file(tmp_path / "x", "".join(lines)))
    assert by_path(trace, "count, self_ns") == {"main": [1000, 1000]}
    events = "metric like '%event%'"
    rows = trace.sql(f"select count(*), sum(self_value) from path_metrics where {events}").rows()
    assert rows == [(129, 2000.0)]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A perf.data of a program that computes for a while."""
    program = "import time\nu = time.time() + 0.3\nwhile time.time() < u: sorted(range(999), key=lambda n: -n)"
    words = [needs("perf"), "record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o", "perf.data", "--"]
    done = subprocess.run([*words, sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"perf may not record here: {done.stderr[-200:]!r}")
    return tmp_path / "perf.data"


def test_a_perf_data_has_the_sums_of_perf_report(recorded: Path) -> None:
    words = ["perf", "report", "-i", str(recorded), "--stdio", "--no-children", "-g", "none", "-t;", "-F", "period,sym"]
    report = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    expected: Counter[str] = Counter()
    for line in report.splitlines():
        period, _, symbol = line.partition(";")
        if symbol and not line.startswith("#") and not symbol[4:].startswith("0x"):
            expected[symbol[4:].strip()] += int(period)
    found = own_by_function(strobe.open(recorded))
    assert {name: found.get(name) for name in expected} == dict(expected)
    assert sum(expected.values()) > 100_000_000


def test_perf_data_without_perf_is_refused_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(96))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match="it needs perf, which is not installed here") as refused:
        strobe.open(path)
    assert f"perf script -i {path} --no-inline -F +pid > {path}.txt" in str(refused.value)


def test_a_thread_name_that_is_made_to_be_slow_is_not(tmp_path: Path) -> None:
    hostile = PERF + "a 1 " * 200_000 + "\n" + " " * 900_000 + "x\n" + "\t" + "f" * 900_000 + "\n"
    assert quality(strobe.open(text_file(tmp_path / "x", hostile)))["lines_not_understood"] == 4


# --- Java Flight Recorder --------------------------------------------------------------------------------------------


def java(kind: str, thread: str, *methods: str, **more: object) -> dict[str, object]:
    """A sample as JDK 17 prints it; methods are the innermost first."""
    frames = [
        {
            "method": {
                "type": {"name": name.rpartition(".")[0], "package": {"name": "a", "module": {"name": "java.base"}}},
                "name": name.rpartition(".")[2],
                "descriptor": "()V",
            },
            "lineNumber": 2,
            "type": "Interpreted",
        }
        for name in methods
    ]
    who = {"osName": thread, "osThreadId": 7, "javaName": thread, "javaThreadId": 1}
    stack = {"truncated": False, "frames": frames, **more} if methods else None
    values = {"startTime": "2026-01-01T00:00:00Z", "sampledThread": who, "stackTrace": stack}
    return {"type": f"jdk.{kind}", "values": values}


JFR = [
    java("ExecutionSample", "main", "java/util/List.sort", "W.main"),
    java("ExecutionSample", "main", "W.main", truncated=True),
    java("ExecutionSample", "main", "java/util/List.sort", "W.main"),
    java("NativeMethodSample", "main", "sun/nio/ch/Net.poll", "W.main"),
    java("ExecutionSample", "worker", "W.main"),
    java("ExecutionSample", "worker"),
    java("CPULoad", "main", "W.main"),
]


def check_java(trace: strobe.Trace) -> None:
    columns = "thread, path, count, self_ns"
    rows = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert rows == [
        ("main", "W.main", 3, 1),
        ("main", "W.main;java.util.List.sort", 2, 2),
        ("main (native code)", "W.main", 1, 0),
        ("main (native code)", "W.main;sun.nio.ch.Net.poll", 1, 1),
        ("worker", "W.main", 1, 1),
    ]
    assert trace.sql("select distinct module from regions").rows() == [("java.base",)]
    counted = quality(trace)
    assert (counted["samples_without_stack"], counted["stacks_cut"], counted["events_of_other_kinds"]) == (1, 1, 1)
    assert counted["weights_are_no_time"] == 4


@pytest.mark.parametrize("indent", [None, 2])
def test_samples_that_jfr_printed_are_counted_by_thread(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps({"recording": {"events": JFR}}, indent=indent)
    check_java(strobe.open(text_file(tmp_path / "x.json", text)))


def test_a_recording_is_printed_by_jfr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jfr"
    path.write_bytes(b"FLR\0\0\2\0\1" + bytes(60))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match="it needs jfr, which is not installed here") as refused:
        strobe.open(path)
    what = "jfr print --json --stack-depth 2048 --events jdk.ExecutionSample,jdk.NativeMethodSample"
    assert f"type: {what} {path} > {path}.json" in str(refused.value)
    printed = written(tmp_path / "printed", {"recording": {"events": JFR}})
    jfr = text_file(tmp_path / "jfr", f'#!/bin/sh\n[ "$*" = "{what[4:]} {path}" ] && exec /bin/cat {printed}\n')
    jfr.chmod(0o755)
    check_java(strobe.open(path))


def test_events_are_read_one_by_one_and_up_to_where_they_are_cut_off(tmp_path: Path) -> None:
    many = json.dumps({"recording": {"events": JFR[:1] * 3000}})
    assert by_path(strobe.open(text_file(tmp_path / "x", many)))["W.main;java.util.List.sort"] == 3000
    torn = strobe.open(text_file(tmp_path / "torn", many[: len(many) // 3]))
    assert by_path(torn)["W.main;java.util.List.sort"] == 999
    assert quality(torn)["truncated"] == 1
    with pytest.raises(FormatError, match="not JSON, or larger than 16 MiB"):
        strobe.open(text_file(tmp_path / "large", '{"recording": {"events": [{"a": "' + "x" * (33 << 20)))
    with pytest.raises(FormatError, match="nested too deeply"):
        strobe.open(text_file(tmp_path / "deep", '{"recording": {"events": [{"a": ' + "[" * 200_000))


def test_a_recording_of_java_has_the_samples_that_jfr_prints(tmp_path: Path) -> None:
    text_file(
        tmp_path / "Spin.java",
        "public class Spin { static long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        "public static void main(String[] a) { long u = System.currentTimeMillis() + 800;\n"
        "while (System.currentTimeMillis() < u) f(20); } }\n",
    )
    options = ["-Xmx64m", "-XX:StartFlightRecording=filename=x.jfr,settings=profile"]
    subprocess.run([needs("javac"), "Spin.java"], cwd=tmp_path, check=True, timeout=120)
    subprocess.run([needs("java"), *options, "Spin"], cwd=tmp_path, check=True, timeout=120, capture_output=True)
    words = [needs("jfr"), "print", "--events", "jdk.ExecutionSample", "x.jfr"]
    text = subprocess.run(words, cwd=tmp_path, check=True, timeout=120, capture_output=True, text=True).stdout
    # The line below `stackTrace = [` is the innermost frame: Spin.f(int) line: 1. While Java starts and ends, its
    # other threads have samples, too.
    leaves = Counter(re.findall(r"stackTrace = \[\n\s+([\w.$<>]+)\(", text))
    trace = strobe.open(tmp_path / "x.jfr")
    query = """select name, sum(self_ns)::bigint from statistics
        where thread not like '% (native code)' and self_ns > 0 group by 1"""
    assert dict(trace.sql(query).rows()) == dict(leaves)
    assert leaves["Spin.f"] > 5
