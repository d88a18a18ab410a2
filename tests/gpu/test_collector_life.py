"""Recording GPUs from start to end: forks, kills, steps, windows, several GPUs, what fails and what is not there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.gpu import fake_cuda
from tests.gpu.recorded import Recorded, attributed, match, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def test_a_fork_records_its_parent_whole_and_touches_no_gpu_in_the_child(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        for _ in range(30):
            gpu.launch("before", ns=2_000)
        child = os.fork()
        if child == 0:
            sum(range(100_000))
            sys.exit(7)
        for _ in range(30):
            gpu.launch("after", ns=2_000)
        gpu.synchronize()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        """,
    )
    found = Counter(found["name"] for _, found in match(ran.trace, ran.did("kernel")))
    assert found == {"before": 30, "after": 30}
    assert len(ran.trace.processes) == 2


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os.abort()", -signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_however_the_program_ends_what_was_over_is_there(tmp_path: Path, end: str, code: int) -> None:
    ran = record(
        tmp_path,
        f"""
        gpu = fake_cuda.Gpu()
        for _ in range(3):
            for _ in range(400):
                gpu.launch("work", ns=1_000)
                gpu.launch("more", ns=1_000)
            gpu.synchronize()
            time.sleep(0.6)
        gpu.launch("last", ns=1_000)
        gpu.synchronize()
        gpu.allocate(1)  # the fake writes its records when it is called
        {end}
        """,
        expected=code,
    )
    pairs = match(ran.trace, ran.did("kernel"))
    assert len(pairs) == 2401
    # A kill takes the names that nobody had looked at yet, and nothing else.
    names = Counter(found["name"] for _, found in pairs)
    assert (names["work"], names["more"]) == (1200, 1200)
    killed = code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGTERM)
    assert names["last"] == 1 or (killed and [n for n in names if n.startswith("kernel@")])
    assert all(found["call"] == "cudaLaunchKernel" for _, found in pairs)
    assert not list((tmp_path / "t.strobe").glob("*.gpu"))


@pytest.mark.parametrize("other_tool", [0, 1])
def test_a_kill_keeps_what_cupti_had_written_while_nobody_asked_for_it(tmp_path: Path, other_tool: int) -> None:
    """Killed from outside at moments that the program does not choose; several times."""
    settings = {"OTHER_TOOL": 1} if other_tool else {}
    for number in range(3 - other_tool):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "program.py").write_text(
            textwrap.dedent(
                """
                import time
                import fake_cuda
                gpu = fake_cuda.Gpu()
                while True:
                    for _ in range(50):
                        gpu.launch("work", ns=1_000)
                    gpu.synchronize()
                    time.sleep(0.002)
                """
            )
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
            cwd=folder,
            env=fake_cuda.environment("13.0", folder / "truth.jsonl", **settings),
            stderr=subprocess.DEVNULL,
        )
        truth = folder / "truth.jsonl"
        while not truth.exists() or truth.stat().st_size < (2 + number) << 20:  # from 2500 kernels on
            assert process.poll() is None
            time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        lines = truth.read_text().splitlines()
        truth.write_text("\n".join(line for line in lines if line.endswith("}")) + "\n")
        told = [row for row in fake_cuda.read_truth(truth, "kernel") if row.get("end_ns")]
        trace = strobe.open(folder / "t.strobe")
        locations = {row["location"]: row for row in trace.locations.to_pylist()}
        streams = {number for number, row in locations.items() if row["kind"] == "stream"}
        rows = trace.sql("select location, sum(count) as n from statistics group by 1").to_pylist()
        folded = sum(row["n"] for row in rows if row["location"] in streams)
        found = [row["correlation"] for row in trace.sql("select correlation from kernel_spans").to_pylist()]
        assert len(found) == sum(locations[number]["span_count"] for number in streams)
        assert len(told) > 1000
        # Nothing twice; and what is missing was being launched and told at that very moment. A line of the log is cut.
        assert len(set(found)) == len(found)
        assert set(found) <= {row["correlation"] for row in told} | {max(found)}
        assert -1 <= len(told) - len(found) - folded <= 55
        if other_tool:  # the calls that launched them, told by records
            calls = trace.sql(
                "select c.correlation as n from call_spans c join spans s using (location, row) "
                "join regions r on r.region = s.region where r.name = 'cudaLaunchKernel'"
            ).to_pylist()
            assert len(set(found) - {row["n"] for row in calls}) <= 1


def test_kernels_follow_the_iteration_that_launched_them(tmp_path: Path) -> None:
    """Of a long loop a few iterations stay in detail: each with all of its kernels, whenever they ran."""
    ran = record(
        tmp_path,
        """
        import strobe
        gpu = fake_cuda.Gpu()
        def train():
            for _ in range(400):
                strobe.step()
                for _ in range(5):
                    gpu.launch("work", ns=20_000)
                time.sleep(0.0005)
        train()
        gpu.synchronize()
        """,
        options=("--keep", "8"),
    )
    trace = ran.trace
    launched = len(ran.did("kernel"))
    assert launched == 2000
    locations = {row["location"]: row for row in trace.locations.to_arrow().to_pylist() if row["kind"] == "stream"}
    detail = sum(row["span_count"] for row in locations.values())
    rows = trace.sql("select location, sum(count) as n from statistics group by 1").to_pylist()
    folded = sum(row["n"] for row in rows if row["location"] in locations)
    assert detail + folded == launched
    assert detail < launched / 2
    steps = [row for row in trace.steps().to_pylist() if row["detail"] == "all"]
    found = attributed(trace)
    zero = trace.zero_ns
    for step in steps[2:-1]:
        begin, end = step["start_ns"] + zero, step["start_ns"] + step["duration_ns"] + zero
        assert sum(begin <= each["call_start_ns"] < end for each in found) == 5


def test_names_stay_right_when_modules_are_unloaded(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        gpu = fake_cuda.Gpu()
        for number in range(4):
            for _ in range(50):
                gpu.launch(f"kernel_{number}", ns=1_000)
            gpu.synchronize()
            time.sleep(1.3)  # told meanwhile
            gpu.unload()
        """,
    )
    for truth, found in match(ran.trace, ran.did("kernel")):
        assert truth["name"] == found["name"]


WINDOWS = """
import ctypes
import strobe
gpu = fake_cuda.Gpu()
enabled = ctypes.CDLL(os.environ["STROBE_CUPTI"]).fake_cupti_enabled
def some(name, ns=1_000):
    for _ in range(20):
        gpu.launch(name, ns=ns)
def window(name):
    strobe.resume()
    some(name, 1_000_000)  # for 20 ms: most of them have not begun when the window ends
    strobe.pause()
    print(enabled(), end=" ")
    some("between")
    gpu.synchronize()
print("on" if enabled() else "off", end=" ")
strobe.pause()
print(enabled(), end=" ")
for name in ("first", "second", "third"):
    window(name)
strobe.resume()
print("on" if enabled() else "off")
"""


@pytest.mark.parametrize(
    ("options", "settings"), [((), {}), ((), {"OTHER_TOOL": 1}), (("--start", "paused"), {})], ids=str
)
def test_nothing_of_a_gpu_is_enabled_between_two_windows(
    tmp_path: Path, options: tuple[str, ...], settings: dict[str, object]
) -> None:
    """A window has all that was launched in it; outside of windows the program is as fast as without strobe."""
    ran = record(tmp_path, WINDOWS, options=options, **settings)
    assert ran.done.stdout == ("off" if options else "on") + " 0 0 0 0 on\n"
    seen = attributed(ran.trace)
    assert Counter(each["name"] for each in seen) == {"first": 20, "second": 20, "third": 20}
    assert {each["call"] for each in seen} == {"cudaLaunchKernel"}
    assert all("some" in each["callers"] for each in seen)


def test_a_second_recording_of_the_process_knows_its_gpus_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import ctypes, os
            import fake_cuda
            import strobe
            for name in ("one", "two"):
                with strobe.record(f"{name}.strobe"):
                    gpu = fake_cuda.Gpu()
                    for _ in range(30):
                        gpu.launch(name, ns=500_000)
                print(ctypes.CDLL(os.environ["STROBE_CUPTI"]).fake_cupti_enabled())
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "0\n0\n"), done.stderr
    for name in ("one", "two"):
        trace = strobe.open(tmp_path / f"{name}.strobe")
        assert Counter(each["name"] for each in attributed(trace)) == {name: 30}
        assert len(trace.device_properties()) == 1
        assert any(row["what"] == "gpu_recorded_with" for row in trace.quality.to_pylist())


def test_processes_may_mean_different_gpus_by_one_number(tmp_path: Path) -> None:
    """As with CUDA_VISIBLE_DEVICES, or on nodes that differ: each is measured by its own."""
    ran = record(
        tmp_path,
        """
        import subprocess
        gpu = fake_cuda.Gpu()
        for _ in range(20):
            gpu.launch("half", grid=(66, 1, 1), block=(1024, 1, 1), ns=1_000_000)
        gpu.synchronize()
        if len(sys.argv) < 2:
            subprocess.run([sys.executable, __file__, "child"], env={**os.environ, "FAKE_CUDA_SMS": "66"}, check=True)
        """,
    )
    rows = ran.trace.utilisation().to_pylist()
    shares = sorted(row["sms_filled_share"] / row["busy_share"] for row in rows)
    assert shares == [pytest.approx(0.5, rel=0.01), pytest.approx(1.0, rel=0.01)]


def test_several_gpus_and_copies_between_them(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        """
        first = fake_cuda.Gpu(0)
        def on(gpu, name):
            gpu.launch(name, ns=1_000)
            gpu.synchronize()
        def second_thread():
            second = fake_cuda.Gpu(1)
            on(second, "of the second")
            second.peer_copy(1 << 16, first)
            second.synchronize()
        thread = threading.Thread(target=second_thread)
        on(first, "of the first")
        thread.start(); thread.join()
        """,
        DEVICES=2,
    )
    pairs = match(ran.trace, ran.did("kernel", "memcpy"))
    devices_of = {found["name"]: found["device"] for _, found in pairs}
    assert devices_of["of the first"] == 0
    assert devices_of["of the second"] == 1
    assert len(ran.trace.device_properties()) == 2
    copies = ran.trace.sql("select copy_kind, size_bytes from copy_spans").to_pylist()
    assert copies == [{"copy_kind": "PtoP", "size_bytes": 1 << 16}]


WORK = """
gpu = fake_cuda.Gpu()
def step():
    gpu.launch("work", ns=1_000)
    gpu.synchronize()
for _ in range(10):
    step()
print("done")
"""


@pytest.mark.parametrize(
    ("settings", "what", "words"),
    [
        ({"FAIL": "Subscribe:39"}, "gpu_calls", "39"),
        ({"FAIL": "Subscribe:39,ActivityEnableRuntimeApi:27"}, "gpu_calls", "calls of CUDA are not recorded"),
        ({"FAIL": "ActivityEnable/10:35"}, "gpu_no_kernels", "35"),
        ({"FAIL": "ActivityEnable/1:27"}, "gpu_no_copies", "27"),
        ({"FAIL": "ActivityRegisterTimestampCallback:14"}, "gpu_failed", "clock"),
        ({"DRIVER": 12080}, "gpu_failed", "driver is of CUDA 12.8"),
        ({"FAIL": "GetVersion:999"}, "gpu_failed", "cuptiGetVersion fails (999)"),
    ],
)
def test_what_fails_is_one_sentence_and_everything_else_is_recorded(
    tmp_path: Path, settings: dict[str, object], what: str, words: str
) -> None:
    ran = record(tmp_path, WORK, environment={"STROBE_QUIET": "no"}, **settings)
    assert ran.done.stdout == "done\n"
    said = ran.said()
    assert words in said[what]
    assert " ".join(said[what].split()) in " ".join(ran.done.stderr.split())
    trace = ran.trace
    calls = trace.sql(
        "select count(*) as n from spans s join regions r on r.region = s.region where r.name = 'step'"
    ).to_pylist()
    assert calls == [{"n": 10}]
    kernels = [each for each in attributed(trace) if each["name"] == "work"]
    assert len(kernels) == (10 if what in ("gpu_calls", "gpu_no_copies") else 0)


def test_a_tool_that_is_there_already_keeps_its_place(tmp_path: Path) -> None:
    ran = record(tmp_path, WORK, environment={"CUDA_INJECTION64_PATH": "none"})
    assert not attributed(ran.trace)
    assert ran.done.stdout == "done\n"
    reason = "CUDA_INJECTION64_PATH names another tool, or none: none"
    assert reason in ran.said()["gpu_failed"]
    assert reason in ran.trace.kernels().note


def test_a_program_without_cuda_loads_nothing_of_nvidia(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(open('/proc/self/maps').read())")
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "strobe" in done.stdout
    assert not any(word in done.stdout for word in ("cupti", "libcuda", "nvml", "nvidia"))
    assert not list((tmp_path / "t.strobe").glob("*.gpu"))


def test_a_program_in_c_is_recorded_too(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(
        """
        #include <dlfcn.h>
        #include <stdio.h>
        typedef struct { unsigned x, y, z; } dim3;
        int main(void) {
          void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
          int (*init)(unsigned) = dlsym(cuda, "cuInit");
          int (*retain)(void**, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
          int (*set)(void*) = dlsym(cuda, "cuCtxSetCurrent");
          int (*load)(void**, const void*) = dlsym(cuda, "cuModuleLoadData");
          int (*get)(void**, void*, const char*) = dlsym(cuda, "cuModuleGetFunction");
          typedef unsigned u;
          int (*launch)(void*, u, u, u, u, u, u, u, void*, void**, void**) = dlsym(cuda, "cuLaunchKernel");
          int (*wait)(void) = dlsym(cuda, "cuCtxSynchronize");
          void *context, *module, *function;
          init(0); retain(&context, 0); set(context); load(&module, "fake"); get(&function, module, "saxpy");
          for (int i = 0; i < 25; i++) launch(function, 4, 1, 1, 64, 1, 1, 0, 0, 0, 0);
          return wait();
        }
        """
    )
    subprocess.run(["gcc", "program.c", "-o", "program", "-ldl"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "--", "./program"],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0", tmp_path / "truth.jsonl"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    ran = Recorded(tmp_path, done)
    calls = Counter((found["name"], found["call"]) for _, found in match(ran.trace, ran.did("kernel")))
    assert calls == {("saxpy", "cuLaunchKernel"): 25}


PROBED = """
import sys
from strobe.record.adapters.cuda import driver
driver.driver_is_there = lambda: True  # the fake has no kernel module
from strobe.cli.main import main
sys.exit(main(["run", "-o", "t.strobe", "--gpu-metrics", "off", "program.py"]))
"""


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"CRASH": 1}, "SIGSEGV"), ({}, ""), ({"DRIVER": 12080}, "driver is of CUDA 12.8")],
    ids=["crashes", "works", "too new"],
)
def test_cupti_is_tried_out_in_a_child_first(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    """One that ends the process that opens it must not end the program."""
    (tmp_path / "program.py").write_text("import fake_cuda\n" + WORK)
    done = subprocess.run(
        [sys.executable, "-c", PROBED],
        cwd=tmp_path,
        env=fake_cuda.environment("13.0", **settings),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert words in " ".join(done.stderr.split())
    ran = Recorded(tmp_path, done)
    assert len([each for each in attributed(ran.trace) if each["name"] == "work"]) == (0 if words else 10)
    assert sorted(path.suffix for path in (tmp_path / "t.strobe").iterdir() if "cupti" in path.name) == []
