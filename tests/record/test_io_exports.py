"""Recordings of files and threads as OTF2 archives: what the official reader has is what programs count themselves."""

from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.record.test_io import build, rows_of
from tests.record.workshop import Workshop

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")
import otf2
from otf2 import enums

from tests.formats import otf2_archives

BY_EVENT = {
    "IoCreateHandle": ("open", "fopen"),
    "IoDestroyHandle": ("close", "fclose"),
    "IoSeek": ("lseek",),
    "IoOperationBegin": (
        *("read", "pread", "readv", "write", "pwrite", "writev", "fread", "fwrite", "fsync", "fdatasync", "fflush"),
    ),
}


def test_files_are_handles_and_operations_with_the_bytes_that_a_program_counts(
    workshop: Workshop, tmp_path: Path
) -> None:
    done = workshop.recorded("--trace", "io", "--", build(workshop, "files", "files"))
    counted = [line.split() for line in done.stdout.splitlines()]
    events: Counter[tuple[str, str]] = Counter()
    moved: Counter[str] = Counter()
    begun: dict[tuple[object, int], int] = {}
    with strobe.open(done.trace) as trace:
        assert not [note for note in trace.export(tmp_path / "archive", "otf2") if "io_totals" not in note]
        totals = rows_of(trace, workshop.folder)
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        for _, event in archive.events:
            what = type(event).__name__
            if not what.startswith("Io") or event.handle.file is None:
                continue
            name = event.handle.file.name.removeprefix(f"{workshop.folder}/")
            events[what, name] += 1
            if what == "IoOperationBegin":
                begun[event.handle, event.matching_id] = event.bytes_request
            elif what == "IoOperationComplete":
                asked = begun.pop((event.handle, event.matching_id))
                if event.bytes_result < 2**63:
                    moved[name] += event.bytes_result
                    assert event.bytes_result <= asked
    assert not begun
    for name in {name for name, *_ in counted}:
        for what, functions in BY_EVENT.items():
            expected = sum(int(calls) for file, function, calls, _ in counted if file == name and function in functions)
            assert events[what, name] == expected, (what, name)
        assert events["IoOperationComplete", name] == events["IoOperationBegin", name]
        assert moved[name] == sum(int(size) for file, _, _, size in counted if file == name)
    with strobe.open(tmp_path / "archive") as again:
        assert rows_of(again, workshop.folder) == totals == set(done.stdout.splitlines())


def test_an_archive_of_another_tool_has_its_files_in_strobe_io(tmp_path: Path) -> None:
    def fill(archive: otf2_archives.Archive) -> None:
        of, events = archive.definitions, archive.events(archive.threads[0])
        posix = of.io_paradigm("POSIX", "POSIX I/O", enums.IoParadigmClass.SERIAL, enums.IoParadigmFlag.OS, {})
        handle = of.io_handle("", file=of.io_regular_file("/data/a", scope=archive.system_node), io_paradigm=posix)
        how = enums.IoAccessMode.READ_WRITE, enums.IoCreationFlag.NONE, enums.IoStatusFlag.NONE
        kinds = enums.IoOperationMode
        mode = {"write": kinds.WRITE, "read": kinds.READ, "fsync": kinds.FLUSH}
        for start, name in enumerate(("open", "write", "write", "lseek", "read", "fsync", "close")):
            region, now = of.region(name), 100 * start
            events.enter(now, region)
            mode = {
                "write": enums.IoOperationMode.WRITE,
                "read": enums.IoOperationMode.READ,
                "fsync": enums.IoOperationMode.FLUSH,
            }
            if name in mode:
                events.io_operation_begin(now, handle, mode[name], enums.IoOperationFlag.NONE, 500, start)
            if name == "open":
                events.io_create_handle(now + 9, handle, *how)
            elif name == "lseek":
                events.io_seek(now + 9, handle, 7, enums.IoSeekOption.FROM_START, 7)
            elif name == "close":
                events.io_destroy_handle(now + 9, handle)
            else:
                events.io_operation_complete(now + 9, handle, 500 if name == "write" else 123, start)
            events.leave(now + 10, region)

    trace = strobe.open(otf2_archives.write(tmp_path / "archive", fill, ranks=1))
    found = {(row["file"], row["function"]): row for row in trace.io().to_pylist()}
    assert {function: row["calls"] for (file, function), row in found.items() if file == "/data/a"} == {
        **dict.fromkeys(("open", "lseek", "read", "fsync", "close"), 1),
        "write": 2,
    }
    write, read = found["/data/a", "write"], found["/data/a", "read"]
    assert (write["written_bytes"], write["read_bytes"], write["total_ns"], write["max_ns"]) == (1000, 0, 20, 10)
    assert (read["read_bytes"], read["bandwidth_gb_s"]) == (123, 12.3)
    assert trace.sql("select offset_bytes from io_spans where operation = 'seek'").rows() == [(7,)]


def test_threads_fork_join_and_hold_locks_as_often_as_the_program(tmp_path: Path) -> None:
    openmp = pytest.importorskip("tests.record.test_openmp")
    folder = tmp_path / "built"
    folder.mkdir()
    built = openmp.compile_programs(folder)
    steps, threads = 5, openmp.THREADS
    for name, locks in ("critical", steps * threads), ("tasks", threads):
        words = ("tasks",) if name == "tasks" else ("threads", name, str(steps))
        (tmp_path / name).mkdir()
        workshop, _ = openmp.run(built, tmp_path / name, *words)
        trace = strobe.open(workshop.trace)
        trace.export(tmp_path / f"{name}.otf2", "otf2")
        events: Counter[str] = Counter()
        teams: Counter[object] = Counter()
        orders: dict[int, list[tuple[int, int]]] = {}
        forks = 1 if name == "tasks" else steps
        with otf2.reader.open(str(tmp_path / f"{name}.otf2" / "traces.otf2")) as archive:
            for location, event in archive.events:
                what = type(event).__name__
                if not what.startswith("Thread"):
                    continue
                events[what] += 1
                if what == "ThreadFork":
                    assert event.number_of_requested_threads == threads
                elif what == "ThreadTeamBegin":
                    assert location in [event.thread_team.group.members[rank] for rank in range(threads)]
                    teams[location] += 1
                elif what == "ThreadAcquireLock":
                    orders.setdefault(event.lock_id, []).append((event.time, event.acquisition_order))
        assert events == {
            **dict.fromkeys(("ThreadFork", "ThreadJoin"), forks),
            **dict.fromkeys(("ThreadTeamBegin", "ThreadTeamEnd"), forks * threads),
            **dict.fromkeys(("ThreadAcquireLock", "ThreadReleaseLock"), locks),
        }
        assert sorted(teams.values()) == [forks] * threads
        for acquired in orders.values():
            assert [order for _, order in sorted(acquired)] == list(range(len(acquired)))
        again = strobe.open(tmp_path / f"{name}.otf2")
        assert again.span_count == trace.span_count
        assert len(again.side_table("marks")) == len(trace.side_table("marks"))


def test_threads_are_created_and_joined_by_whom_the_program_has_it(workshop: Workshop, tmp_path: Path) -> None:
    threads = pytest.importorskip("tests.record.test_native_samples")
    trace, known = threads.recorded(workshop, "family")
    trace.export(tmp_path / "archive", "otf2")
    found: dict[tuple[str, int], tuple[str, int]] = {}
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        ns = 1e9 / archive.timer_resolution
        for location, event in archive.events:
            what = type(event).__name__
            if what.startswith("Thread"):
                found[what, event.sequence_count] = location.name, int(event.time * ns)
                members = [each.name for each in event.thread_contingent.group.members]
                assert sorted(members) == sorted(known)
    who = {key: name for key, (name, _) in found.items()}
    names = dict(enumerate(known))  # in order of creation
    by = {"parent": "main thread", "child": "parent", "last": "main thread"}
    assert who == {
        **{("ThreadCreate", number): by[name] for number, name in names.items()},
        **{("ThreadBegin", number): name for number, name in names.items()},
        **{("ThreadWait", number): by[name] for number, name in names.items()},
        **{("ThreadEnd", number): name for number, name in names.items()},
    }
    for number, name in names.items():
        order = [found[f"Thread{what}", number][1] for what in ("Create", "Begin", "End", "Wait")]
        assert order == sorted(order)
        assert order[2] - order[1] == pytest.approx(known[name], rel=0.1, abs=5e6)
    again = strobe.open(tmp_path / "archive")
    assert len(again.side_table("marks")) == len(trace.side_table("marks"))
