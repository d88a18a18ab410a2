"""I/O of files under `--trace io`: what programs count themselves, and programs that a recorder could break."""

import os
import signal
import subprocess
from pathlib import Path

import strobe
from strobe.model.units import format_ns
from strobe.present.summary import summarise
from tests.record.workshop import STROBE, TIMEOUT_S, Workshop, environment

PROGRAMS = Path(__file__).with_name("io")


def build(workshop: Workshop, name: str, source: str, *options: str) -> str:
    """Compile a program of tests/record/io; return its path."""
    made = str(workshop.folder / name)
    source = str(PROGRAMS / f"{source}.c")
    command = ["gcc", "-O1", "-D_FORTIFY_SOURCE=2", "-w", source, "-o", made, "-pthread", *options]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return made


def rows_of(trace: strobe.Trace, folder: Path) -> set[str]:
    """Rows "file function calls bytes" of the files in a folder."""
    return {
        f"{row['file'].removeprefix(f'{folder}/')} {row['function']} {row['calls']} {row['bytes']}"
        for row in trace.io().to_pylist()
        if row["file"] and row["file"].startswith(f"{folder}/")
    }


def test_calls_bytes_and_files_are_those_that_a_program_counts_with_threads_and_a_fork(workshop: Workshop) -> None:
    done = workshop.recorded("--trace", "io", "--", build(workshop, "files", "files"))
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open(done.trace) as trace:
        assert rows_of(trace, workshop.folder) == set(done.stdout.splitlines())
        rows = trace.io().to_pylist()
        assert [row["calls"] for row in rows if row["file"] == "missing"] == [1]  # no descriptor: its name as given
        for name in ("write", "readv", "fsync", "fwrite"):  # each call is a span, too
            spans = f"select 1 from spans where role = 'io' and name = '{name}'"
            assert len(trace.sql(spans)) == sum(row["calls"] for row in rows if row["function"] == name)
        assert all(0 < row["max_ns"] <= row["total_ns"] for row in rows)
        of_files = [row for row in rows if row["file"] and row["file"].startswith("/")]
        most, whole = max(of_files, key=lambda row: row["total_ns"]), sum(row["total_ns"] for row in of_files)
        assert trace.io().note.startswith(f"I/O of files takes {format_ns(whole)}, ")
        assert trace.io().note.endswith(f"of it {most['function']} of {most['file']}")
        assert [row["rank"] for row in trace.io(by="rank").to_pylist()] == [None, None]  # the program and its child


def test_what_a_killed_program_did_is_known_to_the_last_call(workshop: Workshop) -> None:
    running = workshop.start("--trace", "io", "--", build(workshop, "files", "files"), "wait")
    assert running.stdout is not None
    number, *counted = iter(running.stdout.readline, "end\n")
    os.kill(int(number), signal.SIGKILL)
    running.communicate(timeout=TIMEOUT_S)
    with strobe.open(workshop.trace) as trace:
        assert rows_of(trace, workshop.folder) == {line.strip() for line in counted}


def test_errno_handlers_inside_of_malloc_vfork_and_cancellation_stay_as_they_are(workshop: Workshop) -> None:
    early = build(workshop, "libearly.so", "hostile", "-DEARLY", "-shared", "-fPIC")
    program = build(workshop, "hostile", "hostile", early)
    plain = workshop.plain("--", program)
    assert plain.stdout.splitlines() == ["early 1", "errno 7 7 -1 1 1", "vfork 0 2", "handled 1", "cancelled 1"]
    done = workshop.recorded("--trace", "io", "--", program)
    assert done.visible == plain.visible
    with strobe.open(done.trace) as trace:
        found = rows_of(trace, workshop.folder)
        # What the child of the vfork closed is still open here, and what it opened never was.
        assert {"kept open 1 0", "kept write 2 6"} <= found
        assert not any(row.startswith("of-child") for row in found)
        assert any(row.startswith("handled-") for row in found)


def test_a_python_program_has_its_files_and_none_of_the_recorder(workshop: Workshop) -> None:
    workshop.write(
        "train.py",
        """
        import os, subprocess
        for epoch in range(3):
            with open("checkpoint", "wb", buffering=0) as file:
                for _ in range(20):
                    file.write(bytes(4096))
                    os.fsync(file.fileno())
            with open("checkpoint", "rb") as file:
                assert len(file.read()) == 81920
        subprocess.run(["true"], check=True, stdout=subprocess.DEVNULL)
        """,
    )
    done = workshop.recorded("--trace", "+io", "train.py")
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open(done.trace) as trace:
        rows = {(row["file"], row["function"]): row for row in trace.io().to_pylist()}
        name = str(workshop.folder / "checkpoint")
        assert (rows[name, "write"]["calls"], rows[name, "write"]["bytes"]) == (60, 60 * 4096)
        assert rows[name, "fsync"]["calls"] == 60
        assert rows[name, "open"]["calls"] == 6
        assert rows[name, "read"]["bytes"] == 3 * 81920
        assert not [file for file, _ in rows if file and str(workshop.trace) in file]
        assert trace.io().note.startswith("I/O of files takes ")
    plain = workshop.folder / "plain.strobe"
    command = [STROBE, "run", "--quiet", "-o", str(plain), "-c", "open('/dev/null').close()"]
    subprocess.run(command, env=environment(), check=True, timeout=TIMEOUT_S)
    with strobe.open(plain) as trace:  # off unless asked for
        assert "strobe run --trace +io" in trace.io().note


def test_a_loop_that_waits_for_files_is_io_bound(workshop: Workshop) -> None:
    workshop.recorded("--trace", "io", "--", build(workshop, "loop", "loop"))
    with strobe.open(workshop.trace) as trace:
        found = summarise(trace).verdict
    assert (found.kind, "waits for files" in found.text) == ("io-bound", True)


def test_a_process_that_becomes_another_program_is_not_lost(workshop: Workshop) -> None:
    done = workshop.recorded("--trace", "io", "--", build(workshop, "becomes", "becomes"))
    assert (done.returncode, done.stdout) == (7, "")
    with strobe.open(done.trace) as trace:
        rows = trace.sql("select pid, main, end_state from processes").rows()
        (pid, _, _), *_ = rows
        # A killed child is lost, though its parent goes on; one that became another program is not.
        assert rows[:2] == [(pid, True, "replaced"), (pid, True, "closed")]
        assert sorted(state for _, _, state in rows[2:]) == ["closed", "lost", "replaced"]
        assert rows_of(trace, workshop.folder) >= {"first write 1 5", "second write 1 3", "child write 1 4"}
        assert trace.info.ended == "ended with exit code 7"
        ends = [row["text"] for row in trace.quality.to_pylist() if row["what"] == "ended"]
        assert {text.partition(";")[0] for text in ends if text.startswith("became")} == {
            "became becomes second",
            "became becomes other",
        }
        assert summarise(trace).quality.complete
