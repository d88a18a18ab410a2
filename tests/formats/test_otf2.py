"""OTF2 archives against the official reader: what it gives must be in the trace, to the nanosecond."""

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strobe

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")
from otf2.enums import MappingType, MetricMode, MetricOccurrence, Paradigm, RegionRole, Type

from tests.formats import otf2_archives as archives
from tests.formats import round_trip
from tests.formats.otf2_archives import Archive, Told, oracle
from tests.formats.otf2_every_record import every_record


def numbers(trace: strobe.Trace, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in trace.sql(query).rows()]


def found(trace: strobe.Trace) -> Told:
    """The same as `oracle`, from the trace."""
    zero = trace.zero_ns
    told = Told()
    told.spans = numbers(
        trace,
        f"select l.thread_id, s.name, s.start_ns + {zero}, s.duration_ns from spans s "
        "join locations l using (location) where s.role <> 'copy'",
    )
    told.metrics = numbers(
        trace, f"select regexp_extract(metric, '^[^@(]*[^@( ]'), time_ns + {zero}, value from metrics"
    )
    message = (
        f"select l.thread_id, time_ns + {zero}, communicator_rank, tag, communicator, size_bytes, request "
        "from messages join locations l using (location) where direction = "
    )
    told.sends, told.receives = numbers(trace, message + "'send'"), numbers(trace, message + "'receive'")
    told.collectives = numbers(
        trace, "select collective, communicator, root, sent_bytes, received_bytes from collective_spans"
    )
    return told


def assert_equal(trace: strobe.Trace, expected: Told) -> None:
    actual = found(trace)
    for what in ("spans", "metrics", "sends", "receives", "collectives"):
        assert Counter(getattr(actual, what)) == Counter(getattr(expected, what)), what
    assert expected.spans


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["ping-pong-otf2", "ping-pong-otf2-papi"])
@pytest.mark.parametrize("given", ["folder", "anchor"])
def test_real_archives_are_what_the_official_reader_says(public_folder: Path, name: str, given: str) -> None:
    folder = public_folder / "otf2" / name
    trace = strobe.open(folder if given == "folder" else folder / "traces.otf2")
    assert_equal(trace, oracle(folder / "traces.otf2"))
    assert numbers(trace, "select rank, host, pid is not null from processes order by rank") == [
        (0, "quartz10", True),
        (1, "quartz10", True),
    ]
    assert numbers(trace, "select name, role, paradigm from regions where name in ('MPI_Send', 'MPI_Init')") == [
        ("MPI_Init", "function", "mpi"),
        ("MPI_Send", "p2p", "mpi"),
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("resolution", [10**3, 10**6, 10**9, 2_095_197_216, 3_699_958_577, 2**63 - 25])
def test_random_archives_are_what_the_official_reader_says(tmp_path: Path, seed: int, resolution: int) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(seed), ranks=3, resolution=resolution)
    assert_equal(strobe.open(anchor), oracle(anchor))


def test_small_chunks(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(7), chunk_bytes=256 * 1024)
    assert_equal(strobe.open(anchor), oracle(anchor))


def own_numbers_job(archive: Archive) -> None:
    """Fill an archive whose locations have numbers and clocks of their own."""
    of = archive.definitions
    regions = [of.region(f"region {i}") for i in range(4)]
    first, second = archive.threads
    # Its events say 2 for region 0 and 0 for region 3; 1 is not in the table and stays.
    archives.with_own_numbers(archive, first, MappingType.REGION, {2: 0, 0: 3})
    for ticks, offset in ((1000, 0), (2000, 100), (2900, -3), (10_000, 70_001)):
        archives.with_clock_offset(archive, first, ticks, offset)
    archives.with_clock_offset(archive, second, 5, 1 << 40)
    for location in archive.threads:
        events = archive.events(location)
        for i in range(60):
            events.enter(500 + 200 * i, regions[i % 3])
            events.leave(650 + 200 * i, regions[i % 3])


def test_own_numbers_and_clocks_of_locations(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "a", own_numbers_job)
    expected = oracle(anchor)
    assert {name for _, name, _, _ in expected.spans} == {"region 0", "region 1", "region 2", "region 3"}
    assert_equal(strobe.open(anchor), expected)


def long_job(archive: Archive) -> None:
    """Fill an archive whose events take several chunks of 256 KiB."""
    region = archive.definitions.region("work")
    events = archive.events(archive.threads[0])
    for i in range(15_000):
        events.enter(1 << 50 | 3 * i, region)
        events.leave(1 << 50 | 3 * i + 1, region)


def gpu_job(archive: Archive) -> None:
    of = archive.definitions
    kernel = of.region(
        "void add<float>(float*)", canonical_name="_Z3add", region_role=RegionRole.KERNEL, paradigm=Paradigm.CUDA
    )
    old_kernel = of.region("scale", region_role=RegionRole.FUNCTION, paradigm=Paradigm.CUDA)
    idle = of.region("COMPUTE IDLE", region_role=RegionRole.ARTIFICIAL, paradigm=Paradigm.CUDA)
    launch = of.region("cuLaunchKernel", region_role=RegionRole.WRAPPER, paradigm=Paradigm.CUDA)
    wait = of.region("cuStreamSynchronize", region_role=RegionRole.WRAPPER, paradigm=Paradigm.CUDA)
    marked = of.region("epoch", region_role=RegionRole.WRAPPER, paradigm=Paradigm.CUDA)
    of.group("NVTX", group_type=archives.GroupType.REGIONS, paradigm=Paradigm.UNKNOWN, members=[marked])
    stream_of = of.attribute("CUDA_STREAM_REF", type=Type.LOCATION)
    result = of.attribute("CUDA_DRV_API_RESULT", type=Type.STRING)
    payload = of.attribute("NVTX Payload DOUBLE", type=Type.DOUBLE)
    names = (
        "blocks per grid",
        "threads per block",
        "threads per kernel",
        "static shared memory",
        "dynamic shared memory",
        "total local memory",
        "registers per thread",
        "callsite id",
    )
    parameters = [of.parameter(name, parameter_type=archives.UNSIGNED) for name in names]
    category = of.parameter("NVTX Category", parameter_type=archives.TEXT)
    host, stream = archive.events(archive.threads[0]), archive.events(archive.streams[0])
    host.enter(90, marked, attributes={payload: 2.5})
    host.parameter_string(90, category, "training")
    host.enter(100, launch, attributes={stream_of: archive.streams[0], result: "CUDA_SUCCESS"})
    host.leave(110, launch)
    host.enter(120, wait)
    host.leave(900, wait)
    host.leave(950, marked)
    stream.enter(95, idle)
    stream.leave(200, idle)
    stream.enter(200, kernel)
    for parameter, value in zip(parameters, (80, 256, 20480, 1024, 512, 4096, 40, 7), strict=True):
        stream.parameter_unsigned_int(200, parameter, value)
    stream.leave(300, kernel)
    stream.enter(310, old_kernel)
    stream.leave(320, old_kernel)
    # Members of the communicator: thread 0, stream 0, thread 1, stream 1.
    for start, end, direction, remote, size in (
        (400, 450, "get", 0, 1 << 20),
        (450, 500, "put", 0, 77),
        (600, 700, "get", 3, 1 << 40),
    ):
        getattr(stream, f"rma_{direction}")(start, archive.window, remote, size, 42)
        stream.rma_op_complete_blocking(end, archive.window, 42)


def test_kernels_copies_and_marks_of_gpus(tmp_path: Path) -> None:
    trace = strobe.open(archives.write(tmp_path / "a", gpu_job))
    assert_equal(trace, oracle(tmp_path / "a" / "traces.otf2"))
    kernels = (
        "select name, start_ns, duration_ns, device, context, stream, grid_x, grid_y, block_x, registers_per_thread, "
        "shared_memory_bytes, static_shared_bytes, dynamic_shared_bytes, local_bytes, mangled_name from kernel_spans"
    )
    assert numbers(trace, kernels) == [
        ("void add<float>(float*)", 110, 100, 0, 1, 7, 80, None, 256, 40, 1536, 1024, 512, 4096, "_Z3add"),
        ("scale", 220, 10, 0, 1, 7, *[None] * 9),
    ]
    copies = "select name, copy_kind, start_ns, duration_ns, size_bytes, device, stream, role, paradigm from copy_spans"
    assert numbers(trace, copies) == [
        ("Memcpy HtoD", "HtoD", 310, 50, 1 << 20, 0, 7, "copy", "cuda"),
        ("Memcpy DtoH", "DtoH", 360, 50, 77, 0, 7, "copy", "cuda"),
        ("Memcpy DtoD", "DtoD", 510, 100, 1 << 40, 0, 7, "copy", "cuda"),
    ]
    # "threads per kernel" is the product of the two before it, and not repeated.
    assert numbers(trace, "select name, key, value from arguments order by start_ns, key") == [
        ("epoch", "NVTX Category", '"training"'),
        ("epoch", "NVTX Payload DOUBLE", "2.5"),
        ("cuLaunchKernel", "CUDA_DRV_API_RESULT", '"CUDA_SUCCESS"'),
        ("cuLaunchKernel", "CUDA_STREAM_REF", '"CUDA Context 1: CUDA[0:7]"'),
        ("void add<float>(float*)", "callsite id", "7"),
        ("Memcpy DtoD", "from", '"CUDA Context 2: CUDA[1:7]"'),
    ]
    assert dict(numbers(trace, "select name, paradigm || ' ' || role from regions")) == {
        "void add<float>(float*)": "cuda kernel",
        "scale": "cuda kernel",
        "COMPUTE IDLE": "cuda idle",
        "cuLaunchKernel": "cuda function",
        "cuStreamSynchronize": "cuda sync",
        "epoch": "nvtx range",
        "Memcpy HtoD": "cuda copy",
        "Memcpy DtoH": "cuda copy",
        "Memcpy DtoD": "cuda copy",
    }
    # The stream belongs to the process that created its context, which was written first.
    assert numbers(
        trace, "select p.rank, l.name, l.kind, l.device from locations l join processes p using (process)"
    ) == [
        (0, "Master thread", "thread", None),
        (0, "CUDA[0:7]", "stream", 0),
        (1, "Master thread", "thread", None),
        (1, "CUDA[1:7]", "stream", 1),
    ]


@pytest.mark.parametrize(
    "job", [every_record, archives.random_job(3), gpu_job, own_numbers_job, long_job], ids=lambda job: job.__name__
)
def test_either_byte_order(tmp_path: Path, job: Callable[[Archive], None]) -> None:
    little = archives.write(tmp_path / "little", job, resolution=1_000_003, chunk_bytes=256 * 1024)
    assert_other_byte_order_is_equal(little, tmp_path / "big")


@pytest.mark.parametrize("name", ["ping-pong-otf2", "ping-pong-otf2-papi"])
def test_real_archives_in_the_other_byte_order(public_folder: Path, tmp_path: Path, name: str) -> None:
    assert_other_byte_order_is_equal(public_folder / "otf2" / name / "traces.otf2", tmp_path / "big")


def assert_other_byte_order_is_equal(little: Path, folder: Path) -> None:
    big = archives.turn_around(little.parent, folder)
    assert big.read_bytes()[:2] == b"\3#"
    expected = archives.everything(little)
    assert archives.everything(big) == expected  # the official reader reads what was turned around
    assert expected[1]
    trace = strobe.open(big)
    round_trip.assert_equal(strobe.open(little), trace)
    taken = [int(row["value"]) for row in trace.quality.to_pylist() if row["what"] == "records_taken"]
    assert sum(taken) == len(expected[1])


def test_non_blocking_messages_know_how_long_they_were_on_their_way(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        of = archive.definitions
        pair = of.group(
            "", group_type=archives.GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=archive.threads[1:]
        )
        others = of.comm("others", group=pair, parent=archive.world)
        iallreduce = of.region("MPI_Iallreduce", region_role=RegionRole.COLL_ALL2ALL, paradigm=Paradigm.MPI)
        wait = of.region("MPI_Wait", region_role=RegionRole.POINT2POINT, paradigm=Paradigm.MPI)
        events = archive.events(archive.threads[1])
        events.enter(100, wait)
        events.leave(100, wait)
        events.mpi_isend(100, 1, others, 5, 64, 1)
        events.mpi_irecv_request(110, 2)
        events.mpi_isend(120, 0, archive.world, 6, 32, 3)
        events.mpi_isend_complete(150, 3)
        events.mpi_isend_complete(170, 1)
        events.mpi_request_test(175, 2)
        events.mpi_irecv(180, 1, others, 7, 128, 2)
        events.mpi_isend(190, 1, others, 8, 1, 9)
        events.mpi_request_cancelled(195, 9)
        events.enter(200, iallreduce)
        events.non_blocking_collective_request(205, 11)
        events.leave(210, iallreduce)
        events.enter(300, wait)
        events.non_blocking_collective_complete(350, archives.CollectiveOp.ALLREDUCE, others, 2**32 - 1, 8, 16, 11)
        events.leave(360, wait)
        # Without a call around it, what is known of a collective is from its begin to its end.
        events.mpi_collective_begin(400)
        events.mpi_collective_end(450, archives.CollectiveOp.BCAST, others, 1, 0, 24)

    anchor = archives.write(tmp_path / "a", fill, ranks=3)
    trace = strobe.open(anchor)
    messages = (
        "select time_ns, direction, peer_rank, communicator_rank, peer, tag, communicator, size_bytes, request, "
        "pending_ns from messages order by time_ns"
    )
    second, third = "MPI Rank 2: Master thread", "MPI Rank 0: Master thread"
    assert numbers(trace, messages) == [
        (0, "send", 2, 1, second, 5, "others", 64, 1, 70),
        (20, "send", 0, 0, third, 6, "MPI_COMM_WORLD", 32, 3, 30),
        (80, "receive", 2, 1, second, 7, "others", 128, 2, 70),
        (90, "send", 2, 1, second, 8, "others", 1, 9, None),
    ]
    collectives = (
        "select name, start_ns, duration_ns, collective, communicator, group_size, rank, root, sent_bytes, "
        "received_bytes, request, pending_ns from collective_spans"
    )
    assert numbers(trace, collectives) == [
        ("MPI_Wait", 200, 60, "allreduce", "others", 2, 0, None, 8, 16, 11, 145),
        ("broadcast", 300, 50, "broadcast", "others", 2, 0, 1, 0, 24, None, None),
    ]
    # From request to completion, of a buffer that goes to both ranks; and from begin to end.
    summed = [(row["collective"], row["total_ns"], row["size_bytes"]) for row in trace.collectives().to_pylist()]
    assert summed == [("allreduce", 145, 8), ("broadcast", 50, 24)]
    assert numbers(trace, "select time_ns, name, arguments from marks order by time_ns") == [
        (75, "MpiRequestTest", '{"request": 2}'),
        (95, "MpiRequestCancelled", '{"request": 9}'),
    ]


def test_metrics_of_every_kind_say_what_was_measured(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        of = archive.definitions
        member = of.metric_member("power", metric_mode=MetricMode.ABSOLUTE_LAST, value_type=Type.DOUBLE, unit="W")
        scaled = of.metric_member(
            "time", metric_mode=MetricMode.ACCUMULATED_NEXT, value_type=Type.UINT64, exponent=-3, unit="s"
        )
        kind = of.metric_class([member, scaled], occurrence=MetricOccurrence.ASYNCHRONOUS)
        recorder = archive.metric_locations[0]
        scopes = [archive.threads[0], archive.processes[0], archive.processes[1], archive.system_node]
        events = archive.events(recorder)
        for i, scope in enumerate(scopes):
            instance = of.metric_instance(kind, recorder=recorder, scope=scope)
            for now in (10, 20, 20):
                events.metric(now + 100 * i, instance, [i + 0.5, 1000 * i])
        events.metric(500, kind, [1.5, 1000])
        archive.events(archive.threads[0]).enter(0, of.region("all"))
        archive.events(archive.threads[0]).leave(100, of.region("all"))

    anchor = archives.write(tmp_path / "a", fill)
    trace = strobe.open(anchor)
    query = (
        "select metric, m.process, l.name, list(time_ns order by time_ns), any_value(value), any_value(unit) "
        "from metrics m left join locations l using (location) group by 1, 2, 3 order by min(time_ns), metric desc"
    )
    assert numbers(trace, query) == [
        ("time", 0, "Master thread", [10, 20, 20], 0.0, "s"),
        ("power", 0, "Master thread", [10, 20, 20], 0.5, "W"),
        ("time", 0, None, [110, 120, 120, 500], 1.0, "s"),
        ("power", 0, None, [110, 120, 120, 500], 1.5, "W"),
        ("time @ MPI Rank 1", 0, None, [210, 220, 220], 2.0, "s"),
        ("power @ MPI Rank 1", 0, None, [210, 220, 220], 2.5, "W"),
        ("time @ node07", 0, None, [310, 320, 320], 3.0, "s"),
        ("power @ node07", 0, None, [310, 320, 320], 3.5, "W"),
    ]
    # Who only records for others is no row of the timeline.
    assert numbers(trace, "select count(*) from locations where kind = 'task'") == [(0,)]


def test_calling_contexts_become_spans_and_samples(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        of = archive.definitions
        main, solve, inner = (of.region(name, paradigm=Paradigm.COMPILER) for name in ("main", "solve", "inner"))
        line = of.source_code_location("solve.c", 42)
        at_main = of.calling_context(main, None, None)
        at_solve = of.calling_context(solve, line, at_main)
        at_inner = of.calling_context(inner, None, at_solve)
        timer = of.interrupt_generator("timer", period=1000)
        events = archive.events(archive.threads[0])
        events.calling_context_enter(10, at_main, 1)
        events.calling_context_enter(20, at_inner, 2)
        events.calling_context_sample(25, at_inner, 1, timer)
        events.calling_context_leave(40, at_inner)
        events.calling_context_sample(45, at_solve, 1, timer)
        events.calling_context_leave(50, at_main)

    anchor = archives.write(tmp_path / "a", fill)
    trace = strobe.open(anchor)
    assert_equal(trace, oracle(anchor))
    assert numbers(trace, "select time_ns, call_stack from samples order by 1") == [
        (15, "main\nsolve (solve.c:42)\ninner"),
        (35, "main\nsolve (solve.c:42)"),
    ]
    inner = "select key, value from arguments where name = 'inner' order by key"
    assert numbers(trace, inner) == [
        ("calling_context", '"main\\u000asolve (solve.c:42)\\u000ainner"'),
        ("unwind_distance", "2"),
    ]


def test_what_measuring_did_is_never_the_program_s_own_time(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        of = archive.definitions
        work = of.region("work", region_role=RegionRole.FUNCTION, paradigm=Paradigm.USER)
        flush = of.region("TRACE BUFFER FLUSH", region_role=RegionRole.ARTIFICIAL, paradigm=Paradigm.MEASUREMENT_SYSTEM)
        events = archive.events(archive.threads[0])
        events.enter(0, work)
        events.buffer_flush(10, 30)
        events.enter(40, flush)
        events.leave(45, flush)
        events.measurement_on_off(50, archives.MEASUREMENT_OFF)
        events.measurement_on_off(80, archives.MEASUREMENT_ON)
        events.leave(100, work)

    trace = strobe.open(archives.write(tmp_path / "a", fill))
    assert numbers(trace, "select name, paradigm, start_ns, duration_ns, self_ns from spans order by start_ns") == [
        ("work", "user", 0, 100, 45),
        ("BUFFER FLUSH", "strobe", 10, 20, 20),
        ("TRACE BUFFER FLUSH", "strobe", 40, 5, 5),
        ("MEASUREMENT OFF", "strobe", 50, 30, 30),
    ]


def test_python_functions_and_programs(tmp_path: Path) -> None:
    def fill(archive: Archive) -> None:
        of = archive.definitions
        step = of.region(
            "train:step",
            region_role=RegionRole.FUNCTION,
            paradigm=Paradigm.USER,
            source_file="/home/user/train.py",
            begin_line_number=12,
        )
        of.group("train", group_type=archives.GroupType.REGIONS, paradigm=Paradigm.UNKNOWN, members=[step])
        marked = of.region(
            "user:epoch", region_role=RegionRole.FUNCTION, paradigm=Paradigm.USER, source_file="train.py"
        )
        number = of.parameter("epoch", parameter_type=archives.SIGNED)
        process = of.attribute("ProcessId", type=Type.UINT64)
        events = archive.events(archive.threads[0])
        events.program_begin(0, "python3", ["train.py", "--fast"], attributes={process: 4711})
        events.enter(10, marked)
        events.parameter_int(10, number, -3)
        events.enter(20, step)
        events.leave(30, step)
        events.leave(40, marked)
        events.program_end(50, 0)

    trace = strobe.open(archives.write(tmp_path / "a", fill))
    assert_equal(trace, oracle(tmp_path / "a" / "traces.otf2"))
    assert numbers(trace, "select name, paradigm, role, file, line, module from regions order by name") == [
        ("python3", "other", "range", "", 0, ""),
        ("train:step", "python", "function", "/home/user/train.py", 12, "train"),
        ("user:epoch", "user", "range", "train.py", 0, ""),
    ]
    assert numbers(trace, "select pid, argv from processes where rank = 0") == [(4711, "python3 train.py --fast")]
    assert numbers(trace, "select value from arguments where key = 'epoch'") == [("-3",)]


def test_archives_in_archives_are_read_and_may_be_compressed(tmp_path: Path) -> None:
    import gzip

    folder = archives.write(tmp_path / "a", archives.random_job(5)).parent
    expected = oracle(folder / "traces.otf2")
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as tar:
        tar.add(folder, "scorep_run")
    assert_equal(strobe.open(tmp_path / "run.tar.gz"), expected)
    shutil.make_archive(str(tmp_path / "zipped"), "zip", folder)
    assert_equal(strobe.open(tmp_path / "zipped.zip"), expected)
    for each in (folder / "traces").glob("*.evt"):
        each.write_bytes(gzip.compress(each.read_bytes()))
    assert_equal(strobe.open(folder), expected)


def test_other_files_of_the_folder_are_the_archive_s_own(tmp_path: Path) -> None:
    folder = archives.write(tmp_path / "a", archives.random_job(5)).parent
    (folder / "notes.json").write_text(
        json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]})
    )
    trace = strobe.open(folder)
    assert_equal(trace, oracle(folder / "traces.otf2"))


def test_an_archive_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(1))
    first = strobe.open(anchor)
    (events,) = [each for each in (anchor.parent / "traces").glob("*.evt") if each.stat().st_size > 10_000][:1]
    folder = first.path
    made = (folder / "job.json").stat().st_mtime_ns
    strobe.open(anchor)
    assert (folder / "job.json").stat().st_mtime_ns == made
    events.write_bytes(events.read_bytes()[:-5000])
    again = strobe.open(anchor)
    assert (folder / "job.json").stat().st_mtime_ns != made
    assert again.span_count < first.span_count or dict(again.job.imported)


def test_names_in_an_archive_are_no_paths(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(1))
    events = sorted((anchor.parent / "traces").glob("*.evt"))[0]
    events.rename(tmp_path / "elsewhere.evt")
    events.symlink_to(tmp_path / "elsewhere.evt")
    with pytest.raises(strobe.errors.FormatError, match="leads out of its folder"):
        strobe.open(anchor)


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def overwritten(data: bytes) -> bytes:
    middle = 3 * 4096 + 100  # inside of a chunk in the middle
    return data[:middle] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff" + data[middle + 10 :]


@pytest.mark.parametrize("damage", [truncated, overwritten])
def test_what_is_before_the_damage_and_in_other_chunks_is_kept(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    def fill(archive: Archive) -> None:
        region = archive.definitions.region("work")
        events = archive.events(archive.threads[0])
        for i in range(100_000):
            events.enter(10 * i, region)
            events.leave(10 * i + 5, region)

    anchor = archives.write(tmp_path / "a", fill, chunk_bytes=256 * 1024)
    whole = oracle(anchor)
    file = next(each for each in (anchor.parent / "traces").glob("*.evt") if each.stat().st_size > 1_000_000)
    file.write_bytes(damage(file.read_bytes()))
    trace = strobe.open(anchor)
    kept, all_of = Counter(found(trace).spans), Counter(whole.spans)
    cut = sum((kept - all_of).values())
    assert cut <= 2
    share = {truncated: 0.5, overwritten: 0.8}[damage]
    assert share - 0.01 < sum(kept.values()) / len(whole.spans) < 1
    counted = dict(numbers(trace, "select what, value from quality where process = 0 and value is not null"))
    lost = 2 * (len(whole.spans) - sum(kept.values()))
    assert abs(counted["missing_events"] - lost) <= 2
    assert "truncated_files" in counted or "damaged_chunks" in counted


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "traces.def").unlink(), "its definitions are not there"),
        (lambda folder: _patch(folder / "traces.otf2", 28, b"\2"), "SIONlib"),
        (lambda folder: _patch(folder / "traces.otf2", 12, b"\0" * 8), "absurd size"),
        (lambda folder: (folder / "traces.otf2").write_bytes(b"\3BOTF2\0\3\3"), "ends early"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    tmp_path: Path, change: Callable[[Path], object], sentence: str
) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(1))
    change(anchor.parent)
    with pytest.raises(strobe.errors.FormatError, match=sentence):
        strobe.open(anchor)


def _patch(path: Path, at: int, new: bytes) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + new + data[at + len(new) :])


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_crashes(tmp_path: Path, seed: int) -> None:
    import random

    chance = random.Random(seed)
    folder = archives.write(tmp_path / "a", gpu_job if seed % 2 else archives.random_job(seed)).parent
    files = [each for each in (*folder.glob("traces.*"), *folder.glob("traces/*")) if each.stat().st_size > 20]
    for _ in range(chance.choice((1, 3, 30))):
        path = chance.choice(files)
        data = bytearray(path.read_bytes())
        at = chance.randrange(min(9, len(data) - 1), len(data))
        data[at] = chance.choice((0, 1, 255, chance.randrange(256)))
        path.write_bytes(bytes(data))
    try:
        trace = strobe.open(folder / "traces.otf2")
    except strobe.errors.FormatError:
        return
    for table in (
        "spans",
        "kernel_spans",
        "copy_spans",
        "messages",
        "collective_spans",
        "metrics",
        "marks",
        "arguments",
    ):
        assert trace.sql(f"select count(*) from {table}").rows()
