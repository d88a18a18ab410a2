"""Steps of verify.sh that need the driver and CUPTI, or nothing: `python steps.py NAME OUT`."""

import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from verifying import (
    HERE,
    OUT,
    QUICK,
    check,
    compiled,
    figure,
    kernels,
    main,
    need_cupti,
    need_gpu,
    quality,
    ran,
    recorded,
    rows_of,
    skip,
    step,
)

# A GPU's clock is converted between readings of both clocks: by so much a kernel may seem to begin before its launch.
SKEW_NS = 5_000
MOST_CAPTURED = 400_000  # bytes of killed.tar.gz


def said(*command: str) -> str:
    """What a command says, or why it cannot."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"({error})"
    return done.stdout if done.returncode == 0 else f"({done.stderr.strip()[-300:]})"


@step
def environment() -> None:
    """The machine, and what reading its clocks costs."""
    driver = Path("/proc/driver/nvidia/params")
    toolkits = sorted(map(str, Path("/usr/local").glob("cuda*/extras/CUPTI/lib64/libcupti.so*")))
    packages = sorted(
        str(each) for folder in sys.path if folder for each in Path(folder).glob("nvidia/**/libcupti.so*")
    )
    torch = [Path(folder) / "torch/lib/libtorch_cpu.so" for folder in sys.path if folder]
    linked = [said("readelf", "-d", str(each)) for each in torch if each.exists()]
    kernel = Path("/proc/version").read_text() if Path("/proc/version").exists() else platform.platform()
    facts = {
        "python": sys.version,
        "kernel": kernel.strip(),
        "nvidia_smi": said("nvidia-smi", "-q"),
        "driver_parameters": driver.read_text() if driver.exists() else "(none)",
        "libcupti": toolkits + packages,
        "torch_needs": [line.strip() for text in linked for line in text.splitlines() if "NEEDED" in line],
        "compiler": said("gcc", "--version").partition("\n")[0],
        "ncu": said("ncu", "--version").strip(),
    }
    (OUT / "env.json").write_text(json.dumps(facts, indent=1) + "\n")
    began, count = time.monotonic_ns(), 200_000
    for _ in range(count):
        time.monotonic_ns()
    figure("clock read from Python", round((time.monotonic_ns() - began) / count, 1), "ns")


@step
def declarations() -> None:
    """strobe's declarations of CUPTI's interface against the headers of this machine."""
    compiler = shutil.which("g++")
    headers = sorted(Path("/usr/local").glob("cuda*/extras/CUPTI/include"))
    if not compiler or not headers:
        skip("there are no headers of CUPTI in /usr/local/cuda*" if compiler else "there is no C++ compiler")
    native = HERE.parents[2] / "native"
    source = str(native / "tests/cupti/abi.cpp")
    for folder in headers:
        others = ("-isystem", str(folder), "-isystem", str(folder.parents[2] / "include"))
        done = ran(compiler, "-std=c++20", "-fsyntax-only", "-I", str(native), *others, source)
        check(f"the declarations agree with {folder}", done.returncode == 0, done.stderr[-500:])


@step
def codes() -> None:
    """What each CUPTI call returns before cuInit, inside of it and afterwards; sizes of records."""
    need_gpu()
    cupti = need_cupti()
    library = compiled("codes.c", "codes.so", "-w", "-shared", "-fPIC")
    asks = """
import ctypes, os, sys
codes = ctypes.CDLL(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
if sys.argv[2] == "before":
    codes.table(b"before")
else:
    cuda.cuInit(0)
    if sys.argv[2] == "after":
        codes.table(b"after")
"""
    settings = {"CODES_CUPTI": str(cupti), "CODES_OUT": str(Path("codes.jsonl").resolve())}
    for phase in ("before", "injection", "after"):
        injected = {"CUDA_INJECTION64_PATH": library} if phase == "injection" else {}
        done = ran(sys.executable, "-c", asks, library, phase, timeout=20, environment=settings | injected)
        figure(f"exit code of the process, {phase}", done.returncode)
    tables = {row["phase"]: row for row in rows_of(Path("codes.jsonl").read_text())}
    (OUT / "rc_table.json").write_text(json.dumps({"cupti": str(cupti), **tables}, indent=1) + "\n")
    check("a table from inside the driver's initialisation", "injection" in tables, sorted(tables))
    inside = tables.get("injection", {"codes": {}, "sizes": {}})
    # What the collector relies on, before any context is there.
    for name in ("Subscribe", "ActivityRegisterTimestampCallback", "ActivityRegisterCallbacks", "ActivityEnable 10"):
        check(f"cupti{name} succeeds in the injection", inside["codes"].get(name) == 0, inside["codes"].get(name))
    sizes = inside["sizes"]
    check("a kernel's record is as long as some release has it", sizes.get("10") in range(200, 257, 8), sizes.get("10"))
    check("a call's record has 40 bytes", sizes.get("5") == 40, sizes.get("5"))


def look_at_buffers(folder: Path, process: subprocess.Popen[str]) -> int:
    """Bytes that were seen in buffers CUPTI still held, at most, while the process ran."""
    most = 0
    while process.poll() is None:
        for path in folder.glob("*.gpu"):
            try:
                with path.open("rb") as file:
                    head = file.read(8192)
                    buffers = int.from_bytes(head[12:16], "little")
                    for i in range(min(buffers, 128)):
                        # Behind 24 bytes and the sizes of 60 kinds: state, valid, sequence.
                        if int.from_bytes(head[24 + 240 + 12 * i :][:4], "little") != 1:
                            continue
                        file.seek(8192 + (256 << 10) * i)
                        most = max(most, len(file.read(256 << 10).rstrip(b"\0")))
            except OSError:
                pass
        time.sleep(0.02)
    return most


def recording(folder: str, program: str) -> list[str]:
    """Give the command that records all that a program does."""
    options = ["-o", folder, "--summary", "none", "--keep", "all"]
    return [sys.executable, "-m", "strobe", "run", *options, "--", program]


@step
def program_in_c() -> None:
    """Streams, threads, copies, sets, a graph: what the program says it did against the trace."""
    import strobe

    need_gpu(), need_cupti()
    program = compiled("launches.c", "launches")
    line = recording("c.strobe", program)
    with Path("told").open("w") as told_file, Path("talk").open("w") as talk:
        process = subprocess.Popen([*line, "work", "1500"], stdout=told_file, stderr=talk, text=True)
        seen = look_at_buffers(Path("c.strobe"), process)
    talk_text = Path("talk").read_text()
    check("the program ends as it does alone", process.returncode == 0, talk_text[-300:] or process.returncode)
    figure("bytes in buffers that CUPTI held, at most", seen, "B")
    check("CUPTI writes into the mapped file while the program runs", seen > 0, seen)
    told = rows_of(Path("told").read_text())
    trace = strobe.open("c.strobe")
    found = kernels(trace)
    of = Counter((each["call"], each["name"]) for each in found)
    direct = [each for each in told if each["what"] == "kernel"]
    wanted = Counter(each["name"] for each in direct)
    for name, count in wanted.items():
        check(
            f"each launch of {name} is there once",
            of["cuLaunchKernel", name] == count,
            [of["cuLaunchKernel", name], count],
        )
    graphs = sum(int(each["name"]) for each in told if each["what"] == "graph")
    launched = sum(count for (call, _), count in of.items() if call and "GraphLaunch" in call)
    check("each kernel of the graph's launches is there once", launched == graphs, [launched, graphs])
    copies = Counter(each["what"] for each in told)
    moved = Counter(each["name"].split(" ")[0] for each in found)
    check("copies are all there", moved["Memcpy"] == copies["copy"], [moved["Memcpy"], copies["copy"]])
    check("sets are all there", moved["Memset"] == copies["set"], [moved["Memset"], copies["set"]])
    calls = trace.side_table("call_spans").to_arrow().to_pylist()
    spans = trace.side_table("kernel_spans").to_arrow().to_pylist()
    numbers = Counter(row["correlation"] for row in calls)
    alone = sum(numbers[row["correlation"]] == 1 for row in spans)
    check("one call for each kernel, by correlation", alone == len(spans), [alone, len(spans)])
    untimed = quality(trace, "stream_spans_untimed")
    check("no activity without times", untimed == 0, untimed)
    for what in ("stream_spans_lost", "gpu_records_dropped", "gpu_launches_without_work"):
        check(f"{what} is 0", quality(trace, what) == 0, quality(trace, what))
    against_the_program(found, direct)


def against_the_program(found: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    """Check each launch against the times and the thread that the program wrote down around it."""
    early, outside, wrong_thread, late = 0, 0, 0, 0
    error = []
    for thread in {each["thread"] for each in told}:
        theirs = [each for each in told if each["thread"] == thread]
        ours = sorted(
            (each for each in found if each["call"] == "cuLaunchKernel" and each["thread"] == thread),
            key=lambda each: each["call_start_ns"],
        )
        wrong_thread += abs(len(ours) - len(theirs))
        for kernel, launch in zip(ours, theirs, strict=False):
            early += kernel["start_ns"] < kernel["call_start_ns"] - SKEW_NS
            outside += not launch["before_ns"] <= kernel["call_start_ns"] <= kernel["call_end_ns"] <= launch["after_ns"]
            if launch["over_ns"]:  # the program waited for it
                late += kernel["end_ns"] > launch["over_ns"] + SKEW_NS
                error.append(launch["over_ns"] - kernel["end_ns"])
    check("every kernel is on the thread that launched it", wrong_thread == 0, wrong_thread)
    check("no kernel starts before its call", early == 0, early)
    check("every call lies between the program's own readings of the clock", outside == 0, outside)
    check("no kernel ends after the program has waited for it", late == 0, late)
    if error:
        figure("from a kernel's end to the end of waiting for it, median", statistics.median(error), "ns")
        figure("from a kernel's end to the end of waiting for it, least", min(error), "ns")


ENDINGS = {
    "return": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "abort": ("os.abort()", -signal.SIGABRT),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "kill -9": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "fork": ("os.fork() or os._exit(0); os.wait()", 0),
}
ENDS = """
import ctypes, os, signal, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
text = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry work() { ret; }\\n"
assert not cuda.cuModuleLoadData(ctypes.byref(module), text)
assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, b"work")
for round in range(3):
    for _ in range(1000):
        assert not cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    assert not cuda.cuCtxSynchronize()
    if round < 2:
        time.sleep(0.2)
assert not cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1024))  # a call after the last kernel
"""


@step
def levels() -> None:
    """--trace +cuda+memory+events: what the program says that it allocated, moved and waited for against the trace."""
    import strobe

    need_gpu(), need_cupti()
    program = compiled("memory.c", "memory")
    options = ("--keep", "all", "--trace", "+cuda+memory+events")
    done = recorded("levels.strobe", "--", program, options=options)
    check("the program ends as it does alone", done.returncode == 0, done.stderr[-300:] or done.returncode)
    told = rows_of(done.stdout)
    trace = strobe.open("levels.strobe")
    for row in trace.quality.to_pylist():
        if str(row["what"]).startswith("gpu_"):
            figure(str(row["what"]), row["text"] or row["value"])
    rows = trace.side_table("allocations").to_arrow().to_pylist()
    size_of = {each["address"]: each["bytes"] for each in told if each["what"] == "allocation"}
    for each in told:
        if each["what"] == "allocation":
            found = [
                (row["size_bytes"], row["memory_kind"])
                for row in rows
                if row["address"] == each["address"] and row["correlation"]
            ]
            check(
                f"{each['kind']}, {each['bytes']} bytes: allocated and released once",
                sorted(size for size, _ in found if size) == [-each["bytes"], each["bytes"]]
                and {kind for size, kind in found if size} == {each["kind"]},
                found,
            )
    check("as many releases as allocations", len(size_of) == sum(each["what"] == "release" for each in told))
    last = {row["memory_kind"]: row["total_allocated_bytes"] for row in rows}
    check("nothing is in use at the end", not any(last.values()), last)
    figure("changes of pools", [(row["name"], row["total_reserved_bytes"]) for row in rows if row["name"]])
    moved = trace.side_table("copy_spans").to_arrow().to_pylist()
    refused = any(row["what"] == "gpu_no_migrations_of_unified_memory" for row in trace.quality.to_pylist())
    for device, kind in ((0, "Unified HtoD"), (-1, "Unified DtoH")):
        wanted = sum(each["bytes"] for each in told if each["what"] == "migration" and each["to"] == device)
        found_bytes = sum(row["size_bytes"] for row in moved if row["copy_kind"] == kind)
        figure(f"{kind}: bytes told, bytes asked for", [found_bytes, wanted])
        # Memory that nobody has touched yet does not move to the GPU: it begins there.
        if kind == "Unified DtoH" and not refused:
            check(f"{kind}: what moved is a copy", found_bytes > 0, found_bytes)
    waits = trace.side_table("sync_spans").to_arrow().to_pylist()
    of_streams = [row for row in waits if row["sync_kind"] == "Stream Wait Event"]
    known = [row for row in of_streams if row["wait_on_correlation"]]
    wanted = sum(each["what"] == "wait" for each in told)
    check("each wait of a stream is there once", len(of_streams) == wanted, [len(of_streams), wanted])
    check("each names the call that recorded its event", len(known) == wanted, [len(known), wanted])
    check(
        "that call came just before, on the other stream",
        all(
            0 < row["correlation"] - row["wait_on_correlation"] <= 2 and row["stream"] != row["wait_on_stream"]
            for row in known
        ),
    )
    figure("kinds of waits", Counter(row["sync_kind"] for row in waits))


@step
def exits() -> None:
    """However the program ends, its kernels are there, and nothing hangs."""
    import strobe

    need_gpu(), need_cupti()
    for name, (line, code) in ENDINGS.items():
        folder = f"{name.replace(' ', '_')}.strobe"
        Path("ends.py").write_text(ENDS + line + "\n")
        try:
            done = recorded(folder, "ends.py", timeout=20)
        except subprocess.TimeoutExpired:
            check(f"{name}: does not hang", False, "more than 20 s")
            continue
        check(f"{name}: ends as it does alone", done.returncode == code, [done.returncode, done.stderr[-300:]])
        count = len(kernels(strobe.open(folder)))
        check(f"{name}: all 3000 kernels are there", count == 3000, count)


@step
def killed() -> None:
    """The whole tree is killed, so that nobody recovers: the folder as it lies there, for replay on any machine."""
    import strobe

    need_gpu(), need_cupti()
    program = compiled("launches.c", "launches")
    line = recording("k.strobe", program)
    with Path("told").open("w") as told:
        process = subprocess.Popen([*line, "forever"], stdout=told, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(1.6 if QUICK else 3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    time.sleep(0.3)
    buffers = list(Path("k.strobe").glob("*.gpu"))
    check("the file of CUPTI's buffers is left behind", buffers, [each.name for each in Path("k.strobe").iterdir()])
    shutil.copytree("k.strobe", "copy.strobe")
    over = int((Path("told").read_text().split() or ["0"])[-1])
    count = len(kernels(strobe.open("k.strobe")))
    figure("kernels that were over when the program was killed", over)
    figure("kernels in the recovered trace", count)
    # What was over in the last round may be in the GPU's own buffers still, and one round may be on its way.
    check("what was over is recovered", over - 100 <= count <= over + 200, [over, count])
    keep("copy.strobe", over)


def keep(folder: str, over: int) -> None:
    """Leave killed.tar.gz: the folder, with as many of its buffers as have room."""
    (Path(folder) / "over.txt").write_text(f"{over}\n")
    with tarfile.open(OUT / "killed.tar.gz", "w:gz") as archive:
        for path in sorted(Path(folder).iterdir()):
            archive.add(path, f"killed.strobe/{path.name}")
    size = (OUT / "killed.tar.gz").stat().st_size
    figure("killed.tar.gz", size, "B")
    if size > MOST_CAPTURED:
        (OUT / "killed.tar.gz").unlink()
        figure("killed.tar.gz is not kept: more than", MOST_CAPTURED, "B")


def in_turn(variants: dict[str, list[str]], rounds: int) -> dict[str, list[dict[str, float]]]:
    """What each variant prints, round by round."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    for number in range(rounds):
        for name, line in variants.items():
            done = ran(*(word.format(number=number) for word in line), timeout=60)
            rows = rows_of(done.stdout)
            if done.returncode or not rows:
                check(f"{name} runs", False, done.stderr[-300:])
                return {}
            found[name].append(rows[-1])
    return found


@step
def overhead() -> None:
    """What recording adds to a launch, and to replaying a graph of 200 kernels; medians, in turn."""
    need_gpu(), need_cupti()
    program = compiled("launches.c", "launches")
    strobe = [sys.executable, "-m", "strobe", "run", "--summary", "none", "-o"]
    rounds = 2 if QUICK else 7
    for what, count, name in (
        ("empty", 2_000 if QUICK else 100_000, "launch"),
        ("graph", 20 if QUICK else 500, "graph"),
    ):
        work = [program, what, str(count)]
        variants = {
            "off": work,
            "gpu": [*strobe, what + "_gpu_{number}.strobe", "--", *work],
            "paused": [*strobe, what + "_paused_{number}.strobe", "--start", "paused", "--", *work],
        }
        found = in_turn(variants, rounds)
        for value in ("launch_ns", "whole_ns"):
            middle = {variant: statistics.median(row[value] for row in rows) for variant, rows in found.items()}
            for variant, ns in middle.items():
                figure(f"{name}, {value}, {variant}", ns, "ns")
            if middle:
                figure(f"{name}, {value}, added", round(middle["gpu"] - middle["off"], 1), "ns")
        for folder in Path().glob("*.strobe"):
            shutil.rmtree(folder)


@step
def graph_leak() -> None:
    """Many kernels of graphs: do their times stay, and the GPU's memory?"""
    import strobe

    need_gpu(), need_cupti()
    program = compiled("launches.c", "launches")
    launches = 50 if QUICK else 6_800  # of 200 kernels; a tenth is added: 1.5 million
    alone = rows_of(ran(program, "graph", str(launches), timeout=60).stdout)[-1]
    done = recorded("graph.strobe", "--", program, "graph", str(launches), timeout=90, options=("--keep", "10"))
    check("the program ends as it does alone", done.returncode == 0, done.stderr[-300:])
    told = rows_of(done.stdout)[-1]
    trace = strobe.open("graph.strobe")
    streams = {row["location"] for row in trace.locations.to_arrow().to_pylist() if row["kind"] == "stream"}
    detail = sum(row["span_count"] for row in trace.locations.to_arrow().to_pylist() if row["location"] in streams)
    folded = sum(
        row["count"] for row in trace.side_table("statistics").to_arrow().to_pylist() if row["location"] in streams
    )
    untimed = quality(trace, "stream_spans_untimed")
    lost = quality(trace, "stream_spans_lost") + quality(trace, "gpu_records_dropped")
    figure("kernels in the trace", detail + folded)
    figure("GPU memory lost, recorded", told["memory_lost_bytes"], "B")
    figure("GPU memory lost, alone", alone["memory_lost_bytes"], "B")
    check("every kernel has times", untimed == 0, untimed)
    check("every kernel is there", detail + folded == told["launches"] * 200, [detail + folded, told["launches"] * 200])
    check("nothing is lost", lost == 0, lost)
    grown = told["memory_lost_bytes"] - alone["memory_lost_bytes"]
    check("the GPU's memory does not grow by more than 256 MB", grown < 256 << 20, grown)


@step
def nvml() -> None:
    """What reading the GPU costs, and that `strobe run` reads it."""
    import strobe

    need_gpu()
    try:
        import pynvml
    except ImportError:
        skip("pynvml (nvidia-ml-py) is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        skip(f"NVML does not start: {error}")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    calls = {
        "utilisation": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle),
        "memory": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle),
        "power": lambda: pynvml.nvmlDeviceGetPowerUsage(handle),
        "energy": lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "temperature": lambda: pynvml.nvmlDeviceGetTemperature(handle, 0),
        "clock": lambda: pynvml.nvmlDeviceGetClockInfo(handle, 1),
        "PCIe": lambda: pynvml.nvmlDeviceGetPcieThroughput(handle, 0),
    }
    for name, call in calls.items():
        taken = []
        try:
            for _ in range(20 if name == "PCIe" else 200):
                began = time.monotonic_ns()
                call()
                taken.append(time.monotonic_ns() - began)
        except pynvml.NVMLError as error:
            figure(f"{name}: refused", str(error))
        else:
            figure(f"{name}: one call", statistics.median(taken), "ns")
    try:
        support = pynvml.nvmlGpmQueryDeviceSupport(handle)
        figure("GPM is supported", bool(support.isSupportedDevice))
    except (AttributeError, pynvml.NVMLError) as error:
        figure("GPM: refused", str(error))
    Path("sleeps.py").write_text("import time; time.sleep(2)\n")
    done = recorded("n.strobe", "sleeps.py", options=("--gpu-metrics", "100ms"))
    names = {row["name"] for row in strobe.open("n.strobe").metrics.to_pylist()}
    check("the program ends as it does alone", done.returncode == 0, done.stderr[-300:])
    check("the trace has readings of the GPU", any("gpu" in name.lower() for name in names), sorted(names))


@step
def ncu() -> None:
    """Counters of three kernels by Nsight Compute, as it prints them."""
    need_gpu()
    if not shutil.which("ncu"):
        skip("ncu is not installed")
    program = compiled("launches.c", "launches")
    names = "sm__warps_active.avg.pct_of_peak_sustained_active,dram__bytes_read.sum,gpu__time_duration.sum"
    line = (
        "ncu",
        "--csv",
        "--page",
        "raw",
        "--clock-control",
        "none",
        "--metrics",
        names,
        "-c",
        "3",
        program,
        "work",
        "0",
    )
    done = ran(*line, timeout=50)
    (OUT / "ncu.csv").write_text(done.stdout[-100_000:])
    check("ncu prints its table", "sm__warps_active" in done.stdout, done.stdout[-300:] + done.stderr[-300:])


if __name__ == "__main__":
    assert HERE.is_dir()
    main()
