"""GPUs while the program's own torch.profiler has them: Kineto as a second client of the fake CUPTI.

The package `torch` of these programs has the functions that strobe replaces, and events with Kineto's methods; the last
tests take the genuine one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recorded import Recorded, attributed, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

# The profiler tells times of Unix; the two clocks are read one after the other.
CLOCK_NS = 100_000

KINETO = '''
"""As Kineto before August 2026: subscribes, and has its own buffers and kinds."""
import enum, json, os, pathlib, time
import cupti_client, fake_cuda

CONCURRENT_KERNEL, MEMCPY, MEMSET, RUNTIME = 10, 1, 2, 5
KINDS = [int(kind) for kind in os.environ.get("KINETO_KINDS", "10,1,2,5").split(",") if kind]
client = None
clients = []  # CUPTI may still hold a buffer of one
got = []  # activities of each call

class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 2

class DeviceType(enum.Enum):
    CPU = 0
    CUDA = 1

class Event:
    def __init__(self, label, kind, device, start, end, correlation, stream=0, metadata=""):
        self.label, self.kind, self.device, self.start, self.end = label, kind, device, start, end
        self.correlation, self.stream, self.metadata = correlation, stream, metadata
    def name(self): return self.label
    def activity_type(self): return self.kind
    def device_type(self): return DeviceType.CUDA if self.device else DeviceType.CPU
    def device_index(self): return 0
    def device_resource_id(self): return self.stream
    def start_ns(self): return self.start
    def duration_ns(self): return self.end - self.start
    def correlation_id(self): return self.correlation
    def is_user_annotation(self): return self.kind.endswith("user_annotation")
    def metadata_json(self): return self.metadata

class Older(Event):  # PyTorch 2.6 and before
    activity_type = metadata_json = property()

class Result:
    def __init__(self, rows): self.rows = rows
    def events(self):
        if os.environ.get("KINETO_RAISES"):
            raise RuntimeError("no events")
        return self.rows

def _prepare_profiler(config, activities):
    got.append(sorted(each.name for each in activities))

def _enable_profiler(config, activities):
    global client
    _prepare_profiler(config, activities)
    if ProfilerActivity.CUDA not in activities:
        return
    client = cupti_client.Client()
    clients.append(client)
    print("subscribed", client.subscribe())
    print("enabled", client.start(*KINDS, clock=False))

def _disable_profiler():
    global client
    if client is None:
        return Result([])
    if not os.environ.get("KINETO_LEAVES"):
        client.flush()
    for kind in KINDS:
        client.cupti.cuptiActivityDisable(kind)
    if not os.environ.get("KINETO_KEEPS"):
        client.cupti.cuptiUnsubscribe(client.subscriber)
    print("records", len(client.records))
    shift = time.time_ns() - time.monotonic_ns()
    unix = lambda ns: ns if ns > 10**18 else ns + shift  # its clock is that of whoever registered one
    event = Older if os.environ.get("KINETO_OLDER") else Event
    rows = []
    for r in client.records:
        start, end, correlation = unix(r.get("start", 0)), unix(r.get("end", 0)), r.get("correlation", 0)
        if r["kind"] == RUNTIME:
            rows.append(event("cudaLaunchKernel", "cuda_runtime", 0, start, end, correlation))
        elif r["kind"] == CONCURRENT_KERNEL:
            rows.append(event(r["name"], "kernel", 1, start, end, correlation, r["stream"]))
        elif r["kind"] in (MEMCPY, MEMSET):
            copy = r["kind"] == MEMCPY
            name = "Memcpy HtoD (Pinned -> Device)" if copy else "Memset (Device)"
            kind = "gpu_memcpy" if copy else "gpu_memset"
            text = json.dumps({"bytes": r["bytes"], "stream": r["stream"]})[1:-1]
            rows.append(event(name, kind, 1, start, end, correlation, r["stream"], text))
    if rows:
        first, last = min(row.start for row in rows), max(row.end for row in rows)
        rows.append(event("ProfilerStep#1", "gpu_user_annotation", 1, first, last, 0, 7))
        rows.append(event("Stream Sync", "cuda_sync", 1, first, last, 99, 7))
        rows.append(event("aten::mm", "cpu_op", 0, first, last, rows[0].correlation))
    if os.environ.get("KINETO_TWICE"):  # what ran last before it, and still runs, is among its events, too
        known = fake_cuda.read_truth(pathlib.Path(os.environ["FAKE_CUDA_TRUTH"]), "kernel")
        last = [row for row in known if row["name"] == "before"][-5:]
        for r in last + [row for row in known if row["name"] == "late"]:
            start, end = unix(r["start_ns"]), unix(r["end_ns"])
            rows.append(event(r["name"], "kernel", 1, start, end, r["correlation"], r["stream"]))
    client = None
    return Result(rows)
'''

PROGRAM = """
import torch
from torch.autograd import profiler
BOTH = {profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA}
gpu = fake_cuda.Gpu()

def before():
    for _ in range(30):
        gpu.launch("before", ns=2_000)
    gpu.synchronize()

def between():
    for _ in range(30):
        gpu.launch("between", ns=2_000)
        gpu.memcpy(1, 4096, ns=3_000)
        gpu.memset(512, 7)
    gpu.synchronize()

def after():
    for _ in range(30):
        gpu.launch("after", ns=2_000)
    gpu.synchronize()

before()
profiler._prepare_profiler(None, BOTH)
profiler._enable_profiler(None, BOTH)
between()
events = profiler._disable_profiler()
after()
print("activities", profiler.got)
print("injection", bool(os.environ.get("CUDA_INJECTION64_PATH")))
print("done")
"""


def with_kineto(
    folder: Path, program: str = PROGRAM, policy: str = "", options: tuple[str, ...] = (), **kineto: object
) -> Recorded:
    """Run a program with that torch under a policy; `kineto` are settings of it."""
    package = folder / "torch" / "autograd"
    package.mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("class _C: pass\nfrom torch import autograd\n")
    (package / "__init__.py").write_text("from torch.autograd import profiler\n")
    (package / "profiler.py").write_text(KINETO)
    options = ("-t", "python,cuda", *(("--with-torch-profiler", policy) if policy else ()), *options)
    settings = {f"KINETO_{name}": str(value) for name, value in kineto.items()}
    return record(folder, program, "13.0", options, environment=settings)


def matched(ran: Recorded, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the trace has of what the driver did: one for one, at the same times."""
    seen = attributed(ran.trace)
    assert Counter(each["name"].split()[0].lower() for each in seen) == Counter(
        each["name"] or each["what"] for each in told
    )
    for truth, found in zip(sorted(told, key=lambda each: each["start_ns"]), seen, strict=True):
        assert abs(truth["start_ns"] - found["start_ns"]) <= CLOCK_NS
        assert abs((truth["end_ns"] - truth["start_ns"]) - (found["end_ns"] - found["start_ns"])) <= CLOCK_NS
    return seen


def calls_of(seen: list[dict[str, Any]], name: str) -> set[tuple[str | None, bool]]:
    """The calls that launched kernels of this name, and whether the function of that name made them."""
    return {(each["call"], name in each["callers"]) for each in seen if each["name"] == name}


@pytest.mark.parametrize("kineto", [{}, {"OLDER": 1}])
def test_nothing_is_missing_or_twice_when_torch_profiler_has_the_gpus_for_a_while(
    tmp_path: Path, kineto: dict[str, object]
) -> None:
    ran = with_kineto(tmp_path, **kineto)
    assert "subscribed 0\nenabled [0, 0, 0, 0]\n" in ran.done.stdout
    assert ran.done.stdout.endswith("done\n")
    seen = matched(ran, ran.did("kernel", "memcpy", "memset"))
    assert calls_of(seen, "before") == {("cudaLaunchKernel", True)}
    assert calls_of(seen, "after") == {("cudaLaunchKernel", True)}
    assert calls_of(seen, "between") == {(None, False)}
    said = ran.said()["gpu_shared"]
    assert said.startswith("torch.profiler had the GPUs for 0.")
    assert "90 kernels, copies and sets" in said
    # One stream, whoever told what ran there.
    assert len([row for row in ran.trace.locations.to_arrow().to_pylist() if row["kind"] == "stream"]) == 1
    told = ran.did("kernel")
    rows = ran.trace.sql("select correlation, device, stream from kernel_spans order by 1").to_pylist()
    assert rows == sorted(
        ({name: row[name] for name in ("correlation", "device", "stream")} for row in told),
        key=lambda row: row["correlation"],
    )
    copies = ran.trace.sql(
        "select distinct size_bytes, copy_kind, source_kind, destination_kind from copy_spans order by 1"
    )
    size = None if kineto == {"OLDER": 1} else 4096
    assert {
        "size_bytes": size,
        "copy_kind": "HtoD",
        "source_kind": "Pinned",
        "destination_kind": "Device",
    } in copies.to_pylist()


def test_what_both_have_is_told_once(tmp_path: Path) -> None:
    """Kernels from before that the profiler tells of, too; one that still runs when it ends, and comes to us."""
    program = PROGRAM.replace("events =", "gpu.launch('late', ns=30_000_000)\nevents =")
    ran = with_kineto(tmp_path, program, TWICE=1)
    told = ran.did("kernel", "memcpy", "memset")
    assert Counter(row["name"] for row in told)["late"] == 1
    seen = matched(ran, told)
    assert calls_of(seen, "before") == {("cudaLaunchKernel", True)}
    assert "91 kernels" in ran.said()["gpu_shared"]


def test_a_buffer_that_the_profiler_left_in_cupti_is_left_alone(tmp_path: Path) -> None:
    ran = with_kineto(tmp_path, LEAVES=1)
    assert ran.done.stdout.endswith("done\n")
    assert Counter(each["name"] for each in attributed(ran.trace)) == {"before": 30, "after": 30}
    counts = {row["what"]: row["value"] for row in ran.trace.quality.to_pylist()}
    assert counts["gpu_buffers_of_others"] == 1


def test_a_thread_that_is_inside_of_a_call_when_the_gpus_change_hands(tmp_path: Path) -> None:
    """The end of that call comes while nobody tells us: what the thread calls later is recorded all the same."""
    program = PROGRAM.replace(
        "before()\nprofiler",
        """
inside, back = threading.Event(), threading.Event()

def waiting():
    stream = gpu.stream()
    gpu.launch("long", stream=stream, ns=400_000_000)
    inside.set()
    gpu.synchronize(stream)
    back.wait()
    own()

def own():
    for _ in range(5):
        gpu.launch("own", ns=1_000, runtime=False)
    gpu.synchronize()

thread = threading.Thread(target=waiting)
thread.start()
inside.wait()
time.sleep(0.05)
profiler""",
    ).replace("events =", "time.sleep(0.5)\nevents =")
    program = program.replace("after()\nprint", "back.set()\nthread.join()\nafter()\nprint")
    ran = with_kineto(tmp_path, program)
    seen = attributed(ran.trace)
    assert calls_of(seen, "own") == {("cuLaunchKernel", True)}
    calls = ran.trace.sql(
        "select s.duration_ns as ns from spans s join regions r on r.region = s.region where r.name like '%Synchronize'"
    ).to_pylist()
    assert len(calls) == 3  # between() waited while the profiler had the callbacks
    assert max(row["ns"] for row in calls) >= 390_000_000  # the clocks of the fake


def test_nothing_of_ours_is_enabled_while_another_has_the_gpus(tmp_path: Path) -> None:
    """A client that enables nothing gets nothing; with a kind of ours left on its buffers would fill."""
    ran = with_kineto(tmp_path, KINDS="")
    assert "subscribed 0\nenabled []\nrecords 0\n" in ran.done.stdout
    assert Counter(each["name"] for each in attributed(ran.trace)) == {"before": 30, "after": 30}


@pytest.mark.parametrize("release", ["12.4", "13.0"])
def test_calls_are_told_by_records_when_the_profiler_keeps_the_callbacks(tmp_path: Path, release: str) -> None:
    ran = with_kineto(tmp_path, KEEPS=1, release=release)
    seen = matched(ran, ran.did("kernel", "memcpy", "memset"))
    assert calls_of(seen, "before") == {("cudaLaunchKernel", True)}
    assert calls_of(seen, "after") == {("cudaLaunchKernel", True)}
    assert "39" in ran.said()["gpu_calls"]
    assert "it keeps CUPTI's callbacks" in ran.said()["gpu_shared"]


def test_profiler_that_comes_again_and_again(tmp_path: Path) -> None:
    program = PROGRAM.replace("before()\nprofiler", "for _ in range(3):\n  before()\n  profiler")
    for line in ("profiler._enable", "between()\nevents", "events =", "after()\nprint"):
        program = program.replace(f"\n{line}", f"\n  {line}")
    ran = with_kineto(tmp_path, program)
    seen = matched(ran, ran.did("kernel", "memcpy", "memset"))
    assert calls_of(seen, "before") == calls_of(seen, "after") == {("cudaLaunchKernel", True)}
    assert calls_of(seen, "between") == {(None, False)}
    assert "(3 times): 270 kernels" in ran.said()["gpu_shared"]


def test_events_that_cannot_be_read_are_no_trouble_of_the_program(tmp_path: Path) -> None:
    ran = with_kineto(tmp_path, RAISES=1)
    assert ran.done.stdout.endswith("done\n")
    assert Counter(each["name"] for each in attributed(ran.trace)) == {"before": 30, "after": 30}
    counts = {row["what"]: row["value"] for row in ran.trace.quality.to_pylist()}
    assert counts["gpu_events_of_profiler_not_read"] == 1


def test_a_profiler_that_does_not_start_leaves_the_gpus_to_us(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        "profiler._prepare_profiler(None, BOTH)\nprofiler._enable_profiler(None, BOTH)\nbetween()\n"
        "events = profiler._disable_profiler()\n",
        "try:\n  profiler._enable_profiler(None, Fails(BOTH))\nexcept ValueError:\n  print('refused')\n",
    ).replace("BOTH = ", "class Fails(set):\n  def __iter__(self): raise ValueError\nBOTH = ")
    ran = with_kineto(tmp_path, program)
    assert "refused" in ran.done.stdout
    seen = matched(ran, ran.did("kernel"))
    assert calls_of(seen, "after") == {("cudaLaunchKernel", True)}


def test_a_profiler_that_comes_before_the_first_use_of_a_gpu(tmp_path: Path) -> None:
    program = PROGRAM.replace("gpu = fake_cuda.Gpu()\n", "import ctypes\nctypes.CDLL('libcuda.so.1')\n")
    program = program.replace("before()\nprofiler", "profiler").replace(
        "between()\nev", "gpu = fake_cuda.Gpu()\nbetween()\nev"
    )
    ran = with_kineto(tmp_path, program, KINDS="")
    assert "subscribed 0\n" in ran.done.stdout
    seen = attributed(ran.trace)
    assert Counter(each["name"] for each in seen) == {"after": 30}
    assert calls_of(seen, "after") == {("cudaLaunchKernel", True)}


def test_what_the_profiler_tells_belongs_to_the_iteration_that_launched_it(tmp_path: Path) -> None:
    """It comes when the loop is over: of most iterations the kernels are summed up, of a few they stay in detail."""
    program = PROGRAM.replace(
        "between()\nevents",
        """
import strobe
def train():
    for _ in range(300):
        strobe.step()
        for _ in range(5):
            gpu.launch("work", ns=20_000)
        gpu.synchronize()
        time.sleep(0.0005)
    time.sleep(2.5)  # others are decided meanwhile
train()
events""",
    )
    ran = with_kineto(tmp_path, program, options=("--keep", "8"))
    streams = {row["location"]: row for row in ran.trace.locations.to_arrow().to_pylist() if row["kind"] == "stream"}
    detail = sum(row["span_count"] for row in streams.values())
    rows = ran.trace.sql("select location, sum(count) as n from statistics group by 1").to_pylist()
    assert detail + sum(row["n"] for row in rows if row["location"] in streams) == 300 * 5 + 60
    assert detail < 500


def test_keep_gives_torch_profiler_no_gpus(tmp_path: Path) -> None:
    ran = with_kineto(tmp_path, policy="keep")
    assert "subscribed" not in ran.done.stdout
    assert "activities [['CPU'], ['CPU']]" in ran.done.stdout
    seen = matched(ran, ran.did("kernel", "memcpy", "memset"))
    assert calls_of(seen, "between") == {("cudaLaunchKernel", True)}
    assert "no GPUs" in ran.said()["gpu_torch_profiler"]


def test_only_takes_what_torch_profiler_records_and_touches_nothing(tmp_path: Path) -> None:
    ran = with_kineto(tmp_path, policy="only")
    assert "injection False" in ran.done.stdout
    assert "subscribed 0\n" in ran.done.stdout
    told = [row for row in ran.did("kernel", "memcpy", "memset") if row["name"] not in ("before", "after")]
    matched(ran, told)
    assert "90 kernels" in ran.said()["gpu_recorded_with"]
    assert not list((tmp_path / "t.strobe").glob("*.gpu"))


@pytest.mark.parametrize(("policy", "injected"), [("yield", True), ("only", False)])
def test_only_leaves_programs_that_are_no_python_alone_too(tmp_path: Path, policy: str, injected: bool) -> None:
    command = ["-o", "t.strobe", "--with-torch-profiler", policy, "--", "/bin/sh", "-c", "echo x$CUDA_INJECTION64_PATH"]
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "run", *command], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout != "x\n") is injected


@pytest.mark.torch
@pytest.mark.torch
def test_the_genuine_profiler_without_gpus_changes_nothing(tmp_path: Path) -> None:
    """Its functions are replaced and called; what asks for CPU activities only keeps no GPU from us."""
    pytest.importorskip("torch")
    program = """
    gpu = fake_cuda.Gpu()
    import torch
    from torch.profiler import ProfilerActivity, profile
    def step():
        gpu.launch("work", ns=2_000)
        gpu.synchronize()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(3).sum()
        for _ in range(10):
            step()
    print("sums", [event.count for event in prof.key_averages() if event.key == "aten::sum"])
    print("replaced", torch.autograd.profiler._disable_profiler.__module__)
    """
    ran = record(tmp_path, textwrap.dedent(program), options=("-t", "python,torch,cuda"))
    assert "sums [1]\nreplaced strobe.record.adapters.cuda.hooks\n" in ran.done.stdout
    seen = attributed(ran.trace)
    assert len(seen) == 10
    assert calls_of(seen, "work") == {("cudaLaunchKernel", False)}
    assert "gpu_shared" not in ran.said()
