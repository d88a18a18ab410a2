"""OpenCL: what its queues do equals the events of the runtime itself (pocl, which needs no GPU)."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.gpu.recorded import record
from tests.record.workshop import Workshop

pyopencl = pytest.importorskip("pyopencl", reason="pyopencl is not installed: uv pip install --group opencl")
HERE = Path(__file__).parent / "opencl"
LOADER = Path(pyopencl.__file__).parent / ".libs"
if not list(LOADER.glob("pocl.icd")):
    pytest.skip("pocl is not installed: uv pip install --group opencl", allow_module_level=True)
TIMES = 50


def rows(trace: strobe.Trace, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in trace.sql(sql).to_pylist()]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[strobe.Trace, dict[str, list[int]]]]:
    """A program of PyOpenCL, and what it knows of its own events."""
    workshop = Workshop(tmp_path_factory.mktemp("python"))
    done = workshop.recorded(str(HERE / "own_events.py"), str(TIMES))
    assert (done.returncode, done.stderr) == (0, "")
    with strobe.open(workshop.trace) as trace:
        yield trace, json.loads(done.stdout)


def test_kernels_copies_and_bytes_are_those_of_the_runtimes_events(
    python: tuple[strobe.Trace, dict[str, list[int]]],
) -> None:
    trace, own = python
    kernels = {row["kernel"]: [row["calls"], row["total_ns"], 0] for row in trace.kernels().to_pylist()}
    assert set(kernels) == {"scale", "add"}
    found = rows(
        trace,
        "select regions.name, count(*), sum(duration_ns), sum(size_bytes) from copy_spans join regions using (region)"
        " group by 1",
    )
    assert kernels | {str(name): sums for name, *sums in found} == own
    kinds = {row["kind"]: row["size_bytes"] for row in trace.copies().to_pylist()}
    sizes = {"HtoD": "Memcpy HtoD", "DtoH": "Memcpy DtoH", "DtoD": "Memcpy DtoD", "set": "Memset"}
    assert kinds == {kind: own[name][2] for kind, name in sizes.items()}


def test_commands_run_between_their_call_and_the_end_of_the_wait_for_them(
    python: tuple[strobe.Trace, dict[str, list[int]]],
) -> None:
    """The clock of pocl is CLOCK_MONOTONIC_RAW, which is far from the trace's: it must have been converted."""
    trace, _ = python
    work = {}
    for table in ("kernel_spans", "copy_spans"):
        for correlation, *times in rows(trace, f"select correlation, start_ns, start_ns + duration_ns from {table}"):
            work[correlation] = times
    calls = rows(
        trace,
        "select regions.name, correlation, start_ns, start_ns + duration_ns from call_spans"
        " join regions using (region) where regions.name like 'clEnqueue%' or regions.name = 'clWaitForEvents'"
        " order by start_ns",
    )
    # The program waits after each command, PyOpenCL itself after reading.
    begins = [(correlation, begin) for name, correlation, begin, _ in calls if name != "clWaitForEvents"]
    assert len(begins) == len(work) == 6 * TIMES
    for (correlation, begin), (_, after) in zip(begins, [*begins[1:], (0, calls[-1][3])], strict=True):
        start, end = work[correlation]
        assert begin <= start <= end <= after


def test_calls_are_spans_and_those_that_wait_are_known(python: tuple[strobe.Trace, dict[str, list[int]]]) -> None:
    trace, _ = python
    calls = {row["name"]: (row["calls"], row["waits"]) for row in trace.calls().to_pylist()}
    assert calls.pop("clWaitForEvents")[1]
    assert calls == {
        "clBuildProgram": (1, False),
        "clEnqueueNDRangeKernel": (2 * TIMES, False),
        "clEnqueueWriteBuffer": (TIMES, False),
        "clEnqueueReadBuffer": (TIMES, False),
        "clEnqueueCopyBuffer": (TIMES, False),
        "clEnqueueFillBuffer": (TIMES, False),
        "clFinish": (1, True),
    }


def test_sums_of_folded_iterations_are_those_of_the_events_too(workshop: Workshop) -> None:
    done = workshop.recorded("--keep", "5", str(HERE / "own_events.py"), "300")
    own = json.loads(done.stdout)
    with strobe.open(workshop.trace) as trace:
        assert len(rows(trace, "select 1 from kernel_spans")) < 600
        kernels = {row["kernel"]: [row["calls"], row["total_ns"], 0] for row in trace.kernels().to_pylist()}
    assert kernels == {name: own[name] for name in ("scale", "add")}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_c_program_without_events_is_the_same_and_its_commands_have_sizes(workshop: Workshop) -> None:
    (library,) = LOADER.glob("libOpenCL-*")
    subprocess.run(["gcc", HERE / "every_command.c", library, "-o", workshop.folder / "every_command"], check=True)
    # What the package sets up for its own loader.
    place = {"PYOPENCL_HOME": str(LOADER.parent), "OCL_ICD_VENDORS": str(LOADER), "LD_LIBRARY_PATH": str(LOADER)}
    plain = workshop.plain("--", "./every_command", env=place)
    assert plain.visible == ("32\ntoo much: -30\n", "", 7)
    assert workshop.recorded("--", "./every_command", env=place).visible == plain.visible
    with strobe.open(workshop.trace) as trace:
        copies = rows(
            trace,
            "select stream, regions.name, copy_kind, size_bytes from copy_spans join regions using (region)"
            " order by start_ns",
        )
        assert copies == [
            (0, "Memcpy HtoD", "HtoD", 4096),
            (1, "Memset", None, 2048),
            (1, "Memcpy DtoD", "DtoD", 1000),
            (1, "Memcpy DtoH", "DtoH", 8 * 4),
            (1, "Map DtoH", "DtoH", 512),
            (1, "Unmap HtoD", "HtoD", 512),
            (1, "Memcpy HtoD", "HtoD", 8 * 2 * 4 * 4),  # pixels of four floats
        ]
        kernels = rows(trace, "select grid_x, grid_y, grid_z, block_x, block_y, block_z from kernel_spans")
        assert kernels == [(2, 8, 1, 16, 4, 1)] * 5
        failed = rows(trace, "select return_value from call_spans where return_value != 0")
        assert failed == [(-30,)]  # CL_INVALID_VALUE
        assert trace.locations.to_pylist()[-1]["name"] == "GPU 0 stream 1"


def test_queues_of_several_threads_are_streams_in_order(workshop: Workshop) -> None:
    workshop.write(
        "threads.py",
        """
        import threading
        import pyopencl as cl
        context = cl.create_some_context(interactive=False)
        program = cl.Program(context, "__kernel void nothing() {}").build()
        def work():
            queue, nothing = cl.CommandQueue(context), cl.Kernel(program, "nothing")
            for _ in range(2000):
                cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))
            queue.finish()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        """,
    )
    assert workshop.recorded("threads.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        assert rows(trace, "select stream, count(*) from kernel_spans group by 1 order by 1") == [
            (stream, 2000) for stream in range(4)
        ]
        # A command that is out of order would have a lane of its own.
        streams = rows(trace, "select name from locations where kind = 'stream' order by 1")
        assert streams == [(f"GPU 0 stream {stream}",) for stream in range(4)]


def test_what_is_not_over_when_the_program_ends_does_not_hold_it_up(workshop: Workshop) -> None:
    workshop.write(
        "unfinished.py",
        """
        import os
        import pyopencl as cl
        context = cl.create_some_context(interactive=False)
        queue = cl.CommandQueue(context)
        nothing = cl.Kernel(cl.Program(context, "__kernel void nothing() {}").build(), "nothing")
        for _ in range(7):
            cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))
        queue.finish()
        cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,), wait_for=[cl.UserEvent(context)])
        queue.flush()
        os._exit(3)
        """,
    )
    assert workshop.recorded("unfinished.py").visible == ("", "", 3)
    with strobe.open(workshop.trace) as trace:
        assert rows(trace, "select count(*) from kernel_spans") == [(7,)]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_beside_cuda_the_interface_that_was_used_first_is_recorded(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        import pyopencl as cl
        gpu = fake_cuda.Gpu()
        context = cl.create_some_context(interactive=False)
        queue = cl.CommandQueue(context)
        cl.enqueue_nd_range_kernel(
            queue, cl.Kernel(cl.Program(context, "__kernel void nothing() {}").build(), "nothing"), (1,), (1,)
        )
        queue.finish()
        gpu.launch("gemm")
        gpu.synchronize()
        """,
    )
    assert [row["kernel"] for row in ran.trace.kernels().to_pylist()] == ["gemm"]
    assert ran.said()["gpu_opencl"] == "OpenCL is not recorded: GPUs of this process are recorded through CUDA"


def test_layers_of_the_user_stay(workshop: Workshop) -> None:
    workshop.write("layers.py", "import os; print(os.environ.get('OPENCL_LAYERS'))")
    first, *others = workshop.recorded("layers.py", env={"OPENCL_LAYERS": "/opt/a.so:/opt/b.so"}).stdout.split(":")
    assert os.path.basename(first).startswith("libstrobe")
    assert ":".join(others) == "/opt/a.so:/opt/b.so\n"
