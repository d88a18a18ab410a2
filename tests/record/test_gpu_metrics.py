"""What GPUs say of themselves is in the trace: compared with what the library that was asked wrote down it answered."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import STROBE, TIMEOUT_S, Outcome, Workshop, environment, quality_of

FAKES = Path(__file__).with_name("fake_nvml")
NOT_SUPPORTED, NO_PERMISSION, LIBRARY_NOT_FOUND = 3, 4, 12
PROGRAM = """
import os, sys, time
with open("pid", "w") as file:
    file.write(str(os.getpid()))
assert "pynvml" not in sys.modules
time.sleep({})
print("done")
"""
# `strobe` on a machine with an NVIDIA driver: the first argument is the file that stands for the driver's.
WITH_DRIVER = """
import sys

from strobe.cli.main import main
from strobe.record.adapters.cuda import driver

driver.SIGNS = (sys.argv[1],)
sys.exit(main(sys.argv[2:]))
"""
LOSES = """
import time
time.sleep(1.5)
open("lost", "x").close()
print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
time.sleep(2)
"""
STEPS = """
import os, time
import strobe
with open("pid", "w") as file:
    file.write(str(os.getpid()))
for _ in range(25):
    strobe.step()
    time.sleep(0.1)
"""
Values = dict[str, list[tuple[int, float]]]


class Machine(Workshop):
    """A folder of programs on a machine with GPUs: what they are like is `gpus`."""

    def __init__(self, folder: Path, *gpus: Mapping[str, object], nvml: bool = True, **library: object) -> None:
        super().__init__(folder)
        self.driver = folder / "driver"
        self.driver.touch()
        self.strobe = self.write("inside/strobe_with_driver.py", WITH_DRIVER)
        own = [{"pid_file": str(folder / "pid"), **each} for each in gpus]
        (folder / "nothing").mkdir(exist_ok=True)
        self.variables = {
            "FAKE_GPUS": json.dumps({"gpus": own, "log": str(folder / "log"), **library}),
            "PYTHONPATH": str(FAKES if nvml else folder / "nothing"),
        }

    def command(self, *words: str) -> list[str]:
        inside = [sys.executable, str(self.strobe), str(self.driver)]
        return [*inside, "run", "-o", str(self.trace), *words]

    def runs(self, *words: str, seconds: float = 1.0) -> Outcome:
        """Record a program that sleeps."""
        self.write("program.py", PROGRAM.format(seconds))
        done = self.recorded(*words, "program.py", env=self.variables)
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        return done

    def answers(self, what: str, gpu: int = 0) -> list[tuple[int, float]]:
        """What the library wrote down: when it was asked, CLOCK_MONOTONIC, and what it answered."""
        (log,) = (path for path in self.folder.glob("log.*") if "imported" not in path.name)
        rows = [line.split(" ") for line in log.read_text().splitlines()]
        return [(int(ns), float(value)) for handle, name, ns, value in rows if (int(handle), name) == (gpu, what)]


def values(trace: Path) -> Values:
    """Readings of every metric of GPUs in the trace, in order: ns on the recorder's clock."""
    found: Values = {}
    with strobe.open(trace) as opened:
        zero = json.loads((trace / "job.json").read_text())["zero_ns"]
        for row in opened.sql("select metric, time_ns, value, unit from metrics order by time_ns").to_pylist():
            if str(row["metric"]).startswith("GPU "):
                key = f"{row['metric']} [{row['unit']}]"
                found.setdefault(key, []).append((int(str(row["time_ns"])) + zero, float(str(row["value"]))))
    return found


def notes(trace: Path, what: str) -> list[str]:
    """Sentences of the quality table."""
    with strobe.open(trace) as opened:
        return [str(row["text"]) for row in opened.quality.to_pylist() if row["what"] == what]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, Values]:
    """A run on a GPU that can do everything, but tell how busy its tensor cores are."""
    machine = Machine(tmp_path_factory.mktemp("whole"), {"gpm": 1, "reasons": 0x4 | 0x20})
    machine.write("program.py", STEPS)
    assert machine.recorded("--quiet", "program.py", env=machine.variables).visible == ("", "", 0)
    return machine, values(machine.trace)


def test_readings_are_what_the_library_answered_when_it_did(whole: tuple[Machine, Values]) -> None:
    machine, found = whole
    read, answered = found["GPU 0: utilisation [%]"], machine.answers("utilisation")[1:]  # the first was a try
    assert [value for _, value in read] == [value for _, value in answered]
    assert len(read) >= 15
    for (ns, _), (asked_ns, _) in zip(read, answered, strict=True):
        assert abs(ns - asked_ns) < 50_000_000  # in the middle of a call, which also writes down what it answers
    gaps = sorted(b - a for (a, _), (b, _) in pairwise(read))
    assert gaps[len(gaps) // 2] == pytest.approx(100e6, rel=0.5)


def test_counters_become_rates_and_totals_with_the_units_of_nvml(whole: tuple[Machine, Values]) -> None:
    found = dict(whole[1])
    constant = {
        "GPU 0: memory used [bytes]": 3 << 30,
        "GPU 0: memory utilisation [%]": 25,
        "GPU 0: SM clock [MHz]": 1980,
        "GPU 0: memory clock [MHz]": 2619,
        "GPU 0: temperature [°C]": 51,
        "GPU 0: power [W]": 400,
        "GPU 0: SM activity [%]": 20,
        "GPU 0: SM occupancy [%]": 30,
        "GPU 0: DRAM bandwidth [%]": 100,
        "GPU 0: throttled []": 1,
        "GPU 0: throttled: power cap []": 1,
        "GPU 0: throttled: temperature (software) []": 1,
    }
    for name, value in constant.items():
        assert {each for _, each in found.pop(name)} == {value}, name
    rates = {
        "GPU 0: PCIe sent [bytes/s]": 2e9,
        "GPU 0: PCIe received [bytes/s]": 1e9,
        "GPU 0: NVLink sent [bytes/s]": 1.024e9,
        "GPU 0: NVLink received [bytes/s]": 2.048e9,
    }
    for name, rate in rates.items():
        read = [each for _, each in found.pop(name)]
        assert sorted(read)[len(read) // 2] == pytest.approx(rate, rel=0.02), name
    energy = found.pop("GPU 0: energy [J]")
    assert energy[0][1] == 0
    seconds = (energy[-1][0] - energy[0][0]) / 1e9
    assert energy[-1][1] == pytest.approx(400 * seconds, rel=0.05)
    # NVML shows 7 MiB of the program's process, and another's whose memory it does not know.
    assert {each for _, each in found.pop("GPU 0: memory of the process [bytes]")} == {7 << 20}
    assert found.keys() == {"GPU 0: utilisation [%]"}


def test_devices_sums_up_what_the_gpus_said(whole: tuple[Machine, Values]) -> None:
    machine, found = whole
    with strobe.open(machine.trace) as trace:
        (row,) = trace.devices().to_pylist()
        steps = trace.steps().to_pylist()
    assert (row["device"], row["name"], row["uuid"]) == (0, "NVIDIA H100 80GB HBM3", "GPU-0000-0")
    load = [value for _, value in machine.answers("utilisation")[1:]]
    assert row["utilisation_share"] == pytest.approx(sum(load) / len(load) / 100)
    assert row["utilisation_max_share"] == pytest.approx(max(load) / 100)
    assert (row["memory_peak_bytes"], row["memory_bytes"]) == (3 << 30, 80 << 30)
    assert (row["power_w"], row["power_max_w"], row["temperature_max_c"]) == (400, 400, 51)
    assert (row["throttled_share"], row["throttled_by"]) == (1, "power cap, temperature (software)")
    assert (row["sm_activity_share"], row["tensor_share"]) == (pytest.approx(0.2), None)
    assert row["pcie_sent_gb_s"] == pytest.approx(2, rel=0.05)
    energy = found["GPU 0: energy [J]"]
    assert row["energy_j"] == pytest.approx(energy[-1][1])
    # 400 W, so each step of about 0.1 s costs about 40 J.
    long = sum(step["duration_ns"] for step in steps) / len(steps)
    assert len(steps) >= 20
    assert row["step_energy_j"] == pytest.approx(400 * long / 1e9, rel=0.1)


def test_a_cut_trace_keeps_the_readings_of_its_part(whole: tuple[Machine, Values], tmp_path: Path) -> None:
    machine, found = whole
    with strobe.open(machine.trace) as trace:
        trace.cut(tmp_path / "whole.strobe")
        trace.part(time_ns=(1_000_000_000, 2_000_000_000)).cut(tmp_path / "part.strobe")
        assert any("GPU" in each for each in trace.cut(tmp_path / "anonymous.strobe", anonymise=True))
    assert {name: [value for _, value in each] for name, each in values(tmp_path / "whole.strobe").items()} == {
        name: [value for _, value in each] for name, each in found.items()
    }
    part = [value for _, value in values(tmp_path / "part.strobe")["GPU 0: utilisation [%]"]]
    every = [value for _, value in found["GPU 0: utilisation [%]"]]
    assert 5 <= len(part) <= 12
    assert any(every[at : at + len(part)] == part for at in range(len(every)))
    with strobe.open(tmp_path / "part.strobe") as trace:
        (row,) = trace.devices().to_pylist()
        assert row["utilisation_share"] == pytest.approx(sum(part) / len(part) / 100)


def test_the_launcher_asks_and_the_program_does_not(whole: tuple[Machine, Values]) -> None:
    machine, _ = whole
    imported = {path.name.rpartition("-")[2]: path.read_text() for path in machine.folder.glob("log.imported-*")}
    assert (machine.folder / "pid").read_text() not in imported
    assert list(imported.values()) == ["strobe gpus"]  # in a thread of its own: nothing waits for it


def test_metrics_that_a_gpu_refuses_are_left_out_and_named_once(tmp_path: Path) -> None:
    refuses = {"utilisation": NOT_SUPPORTED, "138": NOT_SUPPORTED, "139": NOT_SUPPORTED, "reasons": NO_PERMISSION}
    refuses |= {"186": NOT_SUPPORTED, "197": NOT_SUPPORTED, "198": NOT_SUPPORTED, "old pcie": NO_PERMISSION}
    machine = Machine(tmp_path, {}, {"refuses": refuses, "mig": 1, "gpm": 0})
    machine.runs()
    found = values(machine.trace)
    assert {value for _, value in found["GPU 0: throttled []"]} == {0}
    of_second = {name for name in found if name.startswith("GPU 1")}
    assert of_second == {
        "GPU 1: memory used [bytes]",
        "GPU 1: SM clock [MHz]",
        "GPU 1: memory clock [MHz]",
        "GPU 1: temperature [°C]",
        "GPU 1: energy [J]",
        "GPU 1: power [W]",
        "GPU 1: memory of the process [bytes]",
    }
    assert {value for _, value in found["GPU 1: power [W]"]} == {123}  # the older call
    told = [each for each in notes(machine.trace, "gpu_metrics_refused") if each.startswith("GPU 1")]
    assert len(told) == len(set(told))
    assert "GPU 1 does not report: utilisation, memory utilisation (Not Supported)" in told
    assert "GPU 1 does not report: clock reasons (Insufficient Permissions)" in told
    assert "GPU 1 does not report: PCIe sent (Insufficient Permissions)" in told
    assert {value for _, value in found["GPU 0: PCIe received [bytes/s]"]}


def test_a_gpu_that_is_lost_on_the_way_keeps_what_it_said(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"lost_file": str(tmp_path / "lost")}, {})
    machine.write("program.py", LOSES)
    done = machine.recorded("--quiet", "--gpu-metrics", "50ms", "program.py", env=machine.variables)
    lost_ns, found = int(done.stdout), values(machine.trace)
    assert found["GPU 0: temperature [°C]"][-1][0] < lost_ns + 200_000_000
    assert found["GPU 1: temperature [°C]"][-1][0] > lost_ns + 1_000_000_000
    assert "GPU 0 does not report: temperature (GPU is lost)" in notes(machine.trace, "gpu_metrics_refused")


def test_the_period_is_an_option_and_off_reads_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.runs("--gpu-metrics", "off")
    assert values(machine.trace) == {}
    assert not list(tmp_path.glob("log*"))
    assert not list(machine.trace.glob("gpus-*"))
    refused = machine.recorded("--gpu-metrics", "1us", "program.py", env=machine.variables)
    assert refused.returncode == 2
    assert "cannot read GPUs every 1us" in refused.stderr or "is not a duration" in refused.stderr


def test_without_nvidia_ml_py_the_summary_says_how_to_get_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {}, nvml=False)
    if subprocess.run([sys.executable, "-c", "import pynvml"], capture_output=True).returncode == 0:
        pytest.skip("nvidia-ml-py is installed here")
    done = machine.runs()
    assert values(machine.trace) == {}
    sentence = 'GPUs were not read: nvidia-ml-py is not installed; to have it: pip install "strobe[gpu]"'
    assert notes(machine.trace, "gpus_not_read") == [sentence]
    assert "nvidia-ml-py is not installed" in " ".join(done.stderr.split())


def test_a_library_that_does_not_start_is_told_in_its_own_words(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {}, init=LIBRARY_NOT_FOUND)
    machine.runs()
    (told,) = notes(machine.trace, "gpus_not_read")
    assert told == "GPUs were not read: NVML does not start: NVML Shared Library Not Found"


def test_a_slow_library_delays_neither_begin_nor_end(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {}, init_s=30)
    begin = time.monotonic()
    machine.runs("--quiet", seconds=0.1)
    assert time.monotonic() - begin < 20
    assert values(machine.trace) == {}


def test_a_launcher_that_is_killed_leaves_what_it_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.write("program.py", "print('ready', flush=True)" + PROGRAM.format(60))
    running = machine.start("--quiet", "program.py", env=machine.variables)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and len(values(machine.trace).get("GPU 0: temperature [°C]", [])) < 5:
            time.sleep(0.2)
        running.kill()
        running.wait(TIMEOUT_S)
        before = values(machine.trace)["GPU 0: temperature [°C]"]
        assert len(before) >= 5
        (file,) = machine.trace.glob("gpus-*.metrics")
        file.write_bytes(file.read_bytes()[:-7])  # as a full disk or a crashed machine leaves it
        after = values(machine.trace)["GPU 0: temperature [°C]"]
        assert after == before[: len(after)]
        assert len(after) >= len(before) - 1
        assert any("skipped" in each for each in notes(machine.trace, "bytes_lost"))
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        running.communicate(timeout=TIMEOUT_S)


def test_damage_in_the_middle_costs_what_is_damaged(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.runs(seconds=1.5)
    before = values(machine.trace)["GPU 0: temperature [°C]"]
    (file,) = machine.trace.glob("gpus-*.metrics")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    after = values(machine.trace)["GPU 0: temperature [°C]"]
    assert set(after) < set(before)
    assert len(after) >= len(before) - 2


def test_of_the_launchers_of_a_node_one_reads_and_another_goes_on(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.write("program.py", PROGRAM.format("1.5 if os.environ['PMI_RANK'] == '0' else 3"))
    ranks = []
    for rank in range(3):
        variables = {**machine.variables, "PMI_RANK": str(rank), "PMI_SIZE": "3", "PMI_JOBID": "job"}
        command = machine.command("--quiet", "program.py")
        ranks.append(subprocess.Popen(command, cwd=tmp_path, env=environment(variables), stdout=subprocess.DEVNULL))
    assert [each.wait(TIMEOUT_S) for each in ranks] == [0, 0, 0]
    assert len(list(tmp_path.glob("*.strobe"))) == 1
    assert len(list(machine.trace.glob("gpus-*.metrics"))) == 1
    read = values(machine.trace)["GPU 0: temperature [°C]"]
    gaps = [b - a for (a, _), (b, _) in pairwise(read)]
    # Never two at once: then most readings would be closer than half a period.
    assert sum(gap < 50_000_000 for gap in gaps) <= len(gaps) / 4
    assert read[-1][0] - read[0][0] > 1.8e9


def test_without_a_driver_nothing_of_nvidias_is_loaded(tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("there is a driver here")
    machine = Machine(tmp_path, {})
    machine.write("program.py", "import os, sys\nprint(open(f'/proc/{os.getppid()}/maps').read())")
    begin = [sys.executable, "-X", "importtime", STROBE, "run", "--quiet", "-o", str(machine.trace), "program.py"]
    done = subprocess.run(begin, cwd=tmp_path, env=environment(machine.variables), capture_output=True, text=True)
    assert done.returncode == 0
    assert "strobe.record.launch.run_program" in done.stderr
    for name in ("pynvml", "cuda.nvml", "cuda.gpu_readings"):
        assert name not in done.stderr
    assert "libstrobe" in done.stdout
    assert "libnvidia" not in done.stdout
    assert "libcuda" not in done.stdout
    assert not list(tmp_path.glob("log*"))
    assert not list(machine.trace.glob("gpus-*"))


def test_a_flight_recorder_keeps_the_readings_of_its_time(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {})
    machine.runs("--quiet", "--flight", "1s", "--trace", "python", seconds=6)
    read, answered = values(machine.trace)["GPU 0: utilisation [%]"], machine.answers("utilisation")
    assert [value for _, value in read] == [value for _, value in answered[-len(read) :]]
    assert 0.5e9 < read[-1][0] - read[0][0] < 4e9
    assert len(read) < len(answered)
    assert quality_of(machine.trace, "bytes_lost") == 0
    assert not list(machine.trace.glob("*.next"))
