"""Hardware metrics of GPU kernels: the table of names, NVIDIA's catalogue, and ncu, of which a stand-in is on PATH."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from strobe.api.trace import open_trace
from strobe.errors import RecordError, StrobeError, TraceError, UsageError
from strobe.gpu import measured_metrics
from strobe.gpu.nvidia import catalogue, ncu
from strobe.gpu.nvidia.catalogue import Library
from strobe.model import gpu_metrics
from strobe.present.text import aligned
from tests.deep.kineto import kernel, profile

STROBE = str(Path(sys.executable).with_name("strobe"))

# Names that nvprof had, with a counter that must be part of the answer. Both as NVIDIA's documents have them: the
# metrics of the CUDA Profiler User's Guide, and "nvprof Metric Comparison" of the Nsight Compute CLI.
LD, ST = "pipe_lsu_mem_global_op_ld", "pipe_lsu_mem_global_op_st"
KNOWN = {
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "ipc": "sm__inst_executed.avg.per_cycle_active",
    "issued_ipc": "sm__inst_issued.avg.per_cycle_active",
    "sm_efficiency": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "issue_slot_utilization": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "eligible_warps_per_cycle": "smsp__warps_eligible.sum.per_cycle_active",
    "warp_execution_efficiency": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "branch_efficiency": "smsp__sass_average_branch_targets_threads_uniform.pct",
    "inst_executed": "smsp__inst_executed.sum",
    "inst_per_warp": "smsp__average_inst_executed_per_warp.ratio",
    "gld_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "gst_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "gld_throughput": f"l1tex__t_bytes_{LD}.sum.per_second",
    "gst_throughput": f"l1tex__t_bytes_{ST}.sum.per_second",
    "gld_transactions": f"l1tex__t_sectors_{LD}.sum",
    "gst_transactions": f"l1tex__t_sectors_{ST}.sum",
    "gld_transactions_per_request": f"l1tex__average_t_sectors_per_request_{LD}.ratio",
    "gst_transactions_per_request": f"l1tex__average_t_sectors_per_request_{ST}.ratio",
    "gld_requested_throughput": "smsp__sass_data_bytes_mem_global_op_ld.sum.per_second",
    "gst_requested_throughput": "smsp__sass_data_bytes_mem_global_op_st.sum.per_second",
    "l1_cache_global_hit_rate": "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
    "l1_cache_local_hit_rate": "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct",
    "global_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "tex_cache_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "dram_read_throughput": "dram__bytes_read.sum.per_second",
    "dram_write_throughput": "dram__bytes_write.sum.per_second",
    "dram_read_transactions": "dram__sectors_read.sum",
    "dram_write_transactions": "dram__sectors_write.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_utilization": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_read_transactions": "lts__t_sectors_op_read.sum",
    "l2_write_transactions": "lts__t_sectors_op_write.sum",
    "l2_read_throughput": "lts__t_sectors_op_read.sum.per_second",
    "l2_write_throughput": "lts__t_sectors_op_write.sum.per_second",
    "l2_tex_read_transactions": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_tex_read_throughput": "lts__t_sectors_srcunit_tex_op_read.sum.per_second",
    "l2_tex_write_transactions": "lts__t_sectors_srcunit_tex_op_write.sum",
    "l2_l1_read_transactions": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_l1_read_throughput": "lts__t_sectors_srcunit_tex_op_read.sum.per_second",
    "l2_texture_read_throughput": "lts__t_sectors_srcunit_tex_op_read.sum.per_second",
    "l2_tex_hit_rate": "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "l2_utilization": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "sysmem_read_transactions": "lts__t_sectors_aperture_sysmem_op_read.sum",
    "sysmem_write_transactions": "lts__t_sectors_aperture_sysmem_op_write.sum",
    "sysmem_read_throughput": "lts__t_sectors_aperture_sysmem_op_read.sum.per_second",
    "sysmem_write_throughput": "lts__t_sectors_aperture_sysmem_op_write.sum.per_second",
    "shared_load_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_load_throughput": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum.per_second",
    "shared_store_throughput": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum.per_second",
    "shared_efficiency": "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
    "shared_utilization": "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
    "flop_count_sp": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "flop_count_dp": "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "flop_count_hp": "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
    "tensor_precision_fu_utilization": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    "stall_memory_dependency": "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
    "stall_sync": "smsp__warp_issue_stalled_barrier_per_warp_active.pct",
    "sm_throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "compute_memory_throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "duration": "gpu__time_duration.sum",
    "elapsed_cycles": "sm__cycles_elapsed.max",
    "tensor_active": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_name_of_nvprof_is_answered_by_todays_counter(name: str) -> None:
    assert KNOWN[name] in gpu_metrics.counters([name])
    assert gpu_metrics.METRICS[name].about


ADD, MUL, FMA = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma"))


@pytest.mark.parametrize(
    ("name", "measured", "expected"),
    [
        ("achieved_occupancy", {"sm__warps_active.avg.pct_of_peak_sustained_active": 45.5}, 0.455),
        ("dram_utilization", {"dram__throughput.avg.pct_of_peak_sustained_elapsed": 73}, 7.3),
        ("warp_execution_efficiency", {"smsp__thread_inst_executed_per_inst_executed.ratio": 24}, 75),
        ("flop_count_sp", {ADD: 100, MUL: 20, FMA: 1000}, 2120),
        ("l2_tex_read_throughput", {"lts__t_sectors_srcunit_tex_op_read.sum.per_second": 1e9}, 32e9),
        (
            "l2_tex_hit_rate",
            {"lts__t_sectors_srcunit_tex_lookup_hit.sum": 30, "lts__t_sectors_srcunit_tex.sum": 40},
            75,
        ),
        (
            "l2_tex_hit_rate",
            {"lts__t_sectors_srcunit_tex_lookup_hit.sum": 0, "lts__t_sectors_srcunit_tex.sum": 0},
            None,
        ),
        ("flop_count_sp", {ADD: 100, MUL: None, FMA: 1000}, None),
        ("ipc", {}, None),
        ("sm__cycles_active.avg", {"sm__cycles_active.avg": 12.5}, 12.5),
    ],
)
def test_values_are_brought_to_the_scale_that_nvprof_had(
    name: str, measured: dict[str, float | None], expected: float | None
) -> None:
    value = gpu_metrics.value(name, measured)
    assert value is None if expected is None else value == pytest.approx(expected)


def test_blackwell_calls_some_counters_otherwise() -> None:
    assert gpu_metrics.counters(["dram_read_bytes"], "GB202") == ["dram__bytes_op_read.sum"]
    assert gpu_metrics.counters(["dram_read_bytes"], "GB100") == ["dram__bytes_read.sum"]
    for chip in ("GB100", "GB202"):
        assert gpu_metrics.counters(["sysmem_read_transactions"], chip) == [
            "syslts__t_sectors_aperture_sysmem_op_read.sum"
        ]
    assert gpu_metrics.value("dram_read_bytes", {"dram__bytes_op_read.sum": 7.0}, "GB202") == 7.0


def test_groups_leave_out_what_a_chip_has_not() -> None:
    assert "dram_read_bytes" in gpu_metrics.expanded(["memory"], "GH100")
    on_orin = gpu_metrics.expanded(["memory"], "GA10B")
    assert on_orin
    assert not any(name.startswith("dram_") for name in on_orin)
    assert gpu_metrics.expanded(["ipc", "roofline", "ipc"])[:2] == ["ipc", "flop_count_sp"]


# NVIDIA's catalogue, asked with the genuine libraries


def wheel(package: str) -> Library:
    """The library of a package, or a skip that `--complete` makes a failure."""
    try:
        there = version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    return next(each for each in catalogue.installed() if each.version == there)


def asked(package: str, code: str) -> object:
    """What code prints as JSON, run by a process that has loaded this library and no other."""
    before = f"""
    import json
    from strobe.gpu.nvidia import catalogue
    from strobe.gpu.nvidia.catalogue import Catalogue, Library
    from strobe.model import gpu_metrics
    library = catalogue.load(Library({wheel(package).path!r}, {version(package)!r}))
    """
    words = [sys.executable, "-c", textwrap.dedent(before) + textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MISSING = """
missing = {}
for chip in gpu_metrics.CHIPS.values():
    if chip in catalogue.chips(library) and chip != "GV11B":
        with Catalogue(library, chip) as known:
            names = gpu_metrics.expanded(["all"], chip)
            missing[chip] = [name for name in gpu_metrics.counters(names, chip) if not known.counter(name)]
print(json.dumps(missing))
"""


def test_every_counter_of_the_table_exists_on_every_chip() -> None:
    missing = asked("nvidia-cuda-cupti", MISSING)
    assert isinstance(missing, dict)
    assert {"GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202", "GB10B", "GB20B"} <= missing.keys()
    assert {chip: metric_names for chip, metric_names in missing.items() if metric_names} == {}


def test_an_older_library_knows_the_table_but_for_names_that_changed_since() -> None:
    missing = asked("nvidia-cuda-cupti-cu12", MISSING)
    assert isinstance(missing, dict)
    renamed = set(missing.pop("GB202"))
    assert renamed
    assert all(name.startswith(("dram__bytes_op_", "dram__sectors_op_")) for name in renamed)
    assert {chip: metric_names for chip, metric_names in missing.items() if metric_names} == {}


def test_the_catalogue_says_what_a_chip_has() -> None:
    wheel("nvidia-cuda-cupti")
    with catalogue.open_catalogue("GH100") as known:
        assert len(known.base_metrics) == 3650  # counted with NVIDIA's own tool in CUDA 13.0
        assert known.base_metrics["sm__warps_active"] == "counter"
        assert known.base_metrics["sm__throughput"] == "throughput"
        counter = known.counter("dram__bytes_read.sum.per_second")
        assert counter is not None
        assert (counter.unit, counter.type) == ("byte/second", "counter")
        assert "DRAM" in counter.about
        assert known.counter("sm__no_such_thing.sum") is None
        assert known.counter("sm__warps_active.no_such_suffix") is None


def test_the_catalogue_counts_passes() -> None:
    wheel("nvidia-cuda-cupti")
    with catalogue.open_catalogue("GH100") as known:
        five = ("achieved_occupancy", "ipc", "gld_efficiency", "gst_efficiency", "dram_utilization")
        assert known.passes(gpu_metrics.counters(five, "GH100")) == 2
        assert known.passes(["sm__cycles_active.avg"]) == 1
        assert known.passes(["sm__no_such_thing.sum"]) is None


def test_a_library_that_crashes_without_a_driver_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "libcupti.so.13"
    path.write_text("loading this would fail otherwise")
    for refused in ("13.2.23", "13.4.1", "12.4.127", "11.8.87"):
        with pytest.raises(StrobeError, match=r"12\.6 to 13\.1") as caught:
            catalogue.load(Library(str(path), refused))
        assert caught.value.do == "pip install nvidia-cuda-cupti==13.0.85"


def test_installed_libraries_are_found_by_their_packages(tmp_path: Path) -> None:
    for release in ("13.2.75", "12.9.79"):
        lib = tmp_path / release / "nvidia/lib"
        lib.mkdir(parents=True)
        (lib / "libcupti.so.13").write_text("")
        info = tmp_path / release / f"nvidia_cuda_cupti-{release}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: nvidia-cuda-cupti\nVersion: {release}\n")
        (info / "RECORD").write_text("nvidia/lib/libcupti.so.13,,\n")
    code = "from strobe.gpu.nvidia.catalogue import installed; print(*(each.version for each in installed()))"
    folders = os.pathsep.join(str(tmp_path / release) for release in ("13.2.75", "12.9.79"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folders}
    )
    found = done.stdout.split()
    assert found.index("12.9.79") < found.index("13.2.75"), done.stderr


# ncu's table, in the form that `ncu --csv --page raw` writes

COLUMNS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
)
HEAD = ",".join(f'"{name}"' for name in (*COLUMNS, "Device", "CC"))
GEMM = '"void gemm<float, (int)4>(const float *, ""x"")","1","7","(256, 1, 1)","(1024, 2, 1)"'
RELU = '"relu(float *)","1","7","(128, 1, 1)","(64, 1, 1)"'
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
KINDS = ("static", "dynamic")
LIMITS = [f"launch__occupancy_limit_{of}" for of in ("blocks", "registers", "shared_mem", "warps")]
TABLE = f"""\
==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "gemm" - 0: 0%....50%....100% - 2 passes
{HEAD},"dram__bytes_read.sum","gpu__time_duration.sum","{OCCUPANCY}","lts__t_sector_hit_rate.pct"
"","","","","","","","","","","","Mbyte","usecond","%","%"
"0","4711","python3.11","node1",{GEMM},"0","9.0","1,234.50","12.25","45.5","n/a"
"1","4711","python3.11","node1",{RELU},"0","9.0","2.00","3.00","(nan)","100"
"2","4711","python3.11","node1",{RELU},"0","9.0","4.00","5.00","50","100"
==PROF== Disconnected from process 4711
{HEAD},"gpu__time_duration.sum"
"","","","","","","","","","","","ns"
"3","4712","python3.11","node1","relu(float *)","1","13","(128, 1, 1)","(64, 1, 1)","1","9.0","1,500"
"""


def test_the_table_of_ncu_is_read_with_its_units_and_gaps() -> None:
    gemm, first, second, other = ncu.launches(TABLE)
    assert gemm.kernel == 'void gemm<float, (int)4>(const float *, "x")'
    assert (gemm.process, gemm.context, gemm.stream, gemm.device, gemm.capability) == (4711, 1, 7, 0, "9.0")
    assert (gemm.block, gemm.grid) == ((256, 1, 1), (1024, 2, 1))
    assert gemm.values["dram__bytes_read.sum"] == 1_234_500_000
    assert gemm.units["dram__bytes_read.sum"] == "byte"
    assert gemm.values["gpu__time_duration.sum"] == 12_250
    assert gemm.values["lts__t_sector_hit_rate.pct"] is None
    assert first.values[OCCUPANCY] is None
    assert [first.invocation, second.invocation, other.invocation] == [1, 2, 1]
    assert (other.process, other.device, other.values) == (4712, 1, {"gpu__time_duration.sum": 1500})


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("Kbyte", (1e3, "byte")),
        ("Gbyte/second", (1e9, "byte/s")),
        ("byte/nsecond", (1e9, "byte/s")),
        ("Tbyte/s", (1e12, "byte/s")),
        ("msecond", (1e6, "ns")),
        ("ns", (1, "ns")),
        ("Ghz", (1e9, "hz")),
        ("Kbyte/block", (1e3, "byte/block")),
        ("register/thread", (1, "register/thread")),
        ("inst/cycle", (1, "inst/cycle")),
        ("%", (1, "%")),
        ("", (1, "")),
    ],
)
def test_units_become_base_units(unit: str, expected: tuple[float, str]) -> None:
    factor, base = ncu.base_unit(unit)
    assert (pytest.approx(expected[0]), expected[1]) == (factor, base)


def test_a_torn_table_is_told_in_one_sentence() -> None:
    torn = TABLE[: TABLE.index('"12.25"')] + "\n"
    with pytest.raises(TraceError, match="13 cells in a line, and 15 in its header"):
        ncu.launches(torn)


def test_nothing_that_ncu_prints_around_its_table_is_a_kernel() -> None:
    text = "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. gemm(float const*, int)\n"
    assert ncu.launches(text) == []
    assert ncu.complaints(text) == ["No kernels were profiled. Available Kernels: 1. gemm(float const*, int)"]


def test_kernels_are_chosen_as_nvprof_and_ncu_do() -> None:
    base = ["--kernel-name-base", "demangled"]
    assert ncu.kernel_filter("") == []
    assert ncu.kernel_filter("gemm|relu") == [*base, "--kernel-name", "regex:gemm|relu"]
    assert ncu.kernel_filter("regex:^void gemm") == [*base, "--kernel-name", "regex:^void gemm"]
    assert ncu.kernel_filter("at::native::reduce") == [*base, "--kernel-name", "regex:at::native::reduce"]
    assert ncu.kernel_filter("::gemm:1") == [*base, "--kernel-id", "::regex:gemm:1"]
    assert ncu.kernel_filter("1:7:gemm:2|6") == [*base, "--kernel-id", "1:7:regex:gemm:2|6"]
    assert ncu.kernel_filter(":7:regex:^foo:") == [*base, "--kernel-id", ":7:regex:^foo:"]
    with pytest.raises(UsageError, match="not a regular expression"):
        ncu.kernel_filter("gemm(")


def test_theoretical_occupancy_stands_beside_the_achieved_one_with_what_limits_it() -> None:
    metric_names = ["achieved_occupancy"]
    assert set(LIMITS) < set(measured_metrics.needed(metric_names, "GH100"))
    cells = ",".join(f'"{name}"' for name in (OCCUPANCY, "sm__maximum_warps_per_active_cycle_pct", *LIMITS))
    row = '"0","1","p","h","gemm(int)","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0"'
    text = f'{HEAD},{cells}\n{",".join(chr(34) * 2 for _ in range(17))}\n{row},"30","37.5","32","3","9","8"\n'
    table = measured_metrics.by_launch(ncu.launches(text), metric_names)
    assert [(row["metric"], row["value"], row["limit"]) for row in table.to_pylist()] == [
        ("achieved_occupancy", pytest.approx(0.3), None),
        ("theoretical_occupancy", 0.375, "registers"),
    ]


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "expected", "limit"),
    [  # worked out by hand with NVIDIA's occupancy calculator's rules
        ("9.0", 256, 128, 0, 0.25, "registers"),
        ("9.0", 256, 32, 100 << 10, 0.25, "shared memory"),
        ("9.0", 32, 16, 0, 0.5, "blocks of a multiprocessor"),
        ("9.0", 768, 32, 0, 0.75, "registers, warps of a block"),
        ("9.0", 1024, 32, 0, 1.0, None),
        ("8.6", 32, 16, 0, 1 / 3, "blocks of a multiprocessor"),
    ],
)
def test_theoretical_occupancy_is_computed_where_ncu_tells_only_of_the_launch(
    capability: str, threads: int, registers: int, shared: int, expected: float, limit: str | None
) -> None:
    names = (OCCUPANCY, "launch__registers_per_thread", *(f"launch__shared_mem_per_block_{of}" for of in KINDS))
    head = f"{HEAD},{','.join(chr(34) + name + chr(34) for name in names)}\n"
    row = f'"0","1","p","h","f(int)","1","7","({threads}, 1, 1)","(64, 1, 1)","0","{capability}"'
    text = f'{head}{row},"10","{registers}","0","{shared}"\n'
    _, theoretical = measured_metrics.by_launch(ncu.launches(text), ["achieved_occupancy"]).to_pylist()
    assert theoretical["metric"] == "theoretical_occupancy"
    assert (theoretical["value"], theoretical["limit"]) == (pytest.approx(expected), limit)


def test_people_see_values_with_their_units() -> None:
    text = TABLE.replace("dram__bytes_read.sum", "dram__bytes_read.sum.per_second").replace('"Mbyte"', '"Gbyte/second"')
    shown = aligned(
        measured_metrics.by_kernel(ncu.launches(text), ["duration", "dram_read_throughput", "achieved_occupancy"])
    )
    lines = {line.split()[1]: " ".join(line.split()[2:]) for line in shown.splitlines() if line.startswith("gemm")}
    assert lines["duration"].startswith("1 12.25 us 12.25 us 12.25 us void gemm")
    assert lines["dram_read_throughput"].startswith("1 1.23 TB/s 1.23 TB/s 1.23 TB/s void gemm")
    assert lines["achieved_occupancy"].startswith("1 0.455 0.455 0.455 void gemm")


def test_names_mean_the_same_on_a_chip_that_calls_counters_otherwise() -> None:
    for counter in ("dram__bytes_op_read.sum", "dram__bytes_read.sum"):  # of CUDA 13.0, and of 12.8
        text = TABLE.replace('"9.0"', '"12.0"').replace("dram__bytes_read.sum", counter)
        launches = ncu.launches(text)
        assert "dram_read_bytes" in measured_metrics.present(launches)
        measured_metrics.check_present(["dram_read_bytes"], launches)
        rows = measured_metrics.by_kernel(launches, ["dram_read_bytes"]).to_pylist()
        assert [row["max"] for row in rows] == [1_234_500_000, 4_000_000]


def test_launches_of_a_kernel_become_one_row_a_metric() -> None:
    table = measured_metrics.by_kernel(ncu.launches(TABLE), ["duration", "achieved_occupancy"])
    rows = {(row["kernel"], row["metric"]): row for row in table.to_pylist()}
    assert list(rows)[:2] == [("gemm", "duration"), ("gemm", "achieved_occupancy")]
    relu = rows["relu", "duration"]
    assert [relu[name] for name in ("launches", "min", "max", "unit")] == [3, 1500, 5000, "ns"]
    assert relu["avg"] == pytest.approx((3000 + 5000 + 1500) / 3)
    assert rows["relu", "achieved_occupancy"]["launches"] == 1


def test_tools_that_write_names_differently_mean_one_kernel() -> None:
    by_ncu = "void at::native::some<(int)4, at::native::Fill<float>, (bool)1>(std::array<char *, (unsigned long)1>)"
    by_kineto = "void at::native::some<4, at::native::Fill<float>, true>(std::array<char*, 1ul> )"
    assert measured_metrics.same_name(by_ncu) == measured_metrics.same_name(by_kineto)
    assert measured_metrics.same_name("f<(int)4>(int)") != measured_metrics.same_name("f<(int)8>(int)")
    assert measured_metrics.same_name("f(int)") != measured_metrics.same_name("f(long)")


# The verb, with a stand-in for ncu on PATH. It insists on what ncu needs, and ends with a code of its own.

NCU = f"""\
#!{sys.executable}
import json, os, subprocess, sys
words = sys.argv[1:]
options, flags = {{}}, ("--csv",)
while words and words[0].startswith("--"):
    name, equals, value = words.pop(0).partition("=")
    options[name] = "" if name in flags else value if equals else words.pop(0)
log = options["--log-file"]
json.dump([options, words], open(os.environ["NCU_ARGUMENTS"], "w"))
assert options["--page"] == "raw" and "--csv" in options and options["--print-units"] == "base"
out = open(log, "w")
known = ("sm__", "smsp__", "dram__", "launch__", "l1tex__", "lts__", "gpu__")
for name in options["--metrics"].split(","):
    if not name.startswith(known):
        print(f"==ERROR== Failed to find metric regex:^{{name}}\\\\.(sum|min|max|avg|pct|ratio|max_rate)$", file=out)
        sys.exit(1)
pid = "4711"
print(f"==PROF== Connected to process {{pid}} (/usr/bin/python3)", file=out)
if "NCU_STOPS" in os.environ:
    print("==ERROR== Failed to profile 'gemm' in process 4711", file=out)
else:
    subprocess.run(words)
told = os.environ.get("NCU_SAYS", "")
if told:
    print(told, file=out)
    print("==WARNING== No kernels were profiled.", file=out)
else:
    values = {{"sm__warps_active.avg.pct_of_peak_sustained_active": "62.5", "gpu__time_duration.sum": "1,024",
              "sm__maximum_warps_per_active_cycle_pct": "75", "launch__occupancy_limit_registers": "3"}}
    names = options["--metrics"].split(",")
    head = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC".split(",")
    units = [""] * len(head) + ["nsecond" if name.startswith("gpu__time") else "" for name in names]
    for cells in ([*head, *names], units, *(
        [str(n), pid, "python3", "h", "void gemm<(int)4>(float *)", "1", "7", "(256, 1, 1)", "(64, 1, 1)", "0", "9.0",
         *(values.get(name, "8") for name in names)] for n in range(2)
    )):
        print(",".join('"' + cell + '"' for cell in cells), file=out)
print(f"==PROF== Disconnected from process {{pid}}", file=out)
sys.exit(77)
"""


class Machine:
    """A folder with a stand-in for ncu, a program, and a way to run strobe there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self.ncu = folder / "bin/ncu"
        self.ncu.write_text(NCU)
        self.ncu.chmod(0o755)
        (folder / "train.py").write_text("import sys\nprint('loss', sys.argv[1:])\nsys.exit(3)\n")
        self.arguments = folder / "arguments.json"

    def strobe(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("STROBE_", "CUDA_"))}
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        made = {**clean, "PATH": path, "NCU_ARGUMENTS": str(self.arguments), **environment}
        return subprocess.run([STROBE, *words], capture_output=True, text=True, cwd=self.folder, env=made)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_program_is_measured_and_keeps_its_output_and_exit_code(machine: Machine) -> None:
    asked = "achieved_occupancy,duration,ipc"
    done = machine.strobe("metrics", "--kernels", "::gemm:1", "--metrics", asked, "train.py", "--epochs", "1")
    assert (done.returncode, done.stdout) == (3, "loss ['--epochs', '1']\n"), done.stderr
    options, program = json.loads(machine.arguments.read_text())
    assert options["--kernel-id"] == "::regex:gemm:1"
    assert options["--target-processes"] == "all"
    assert options["--clock-control"] == "none"
    assert KNOWN["ipc"] in options["--metrics"].split(",")
    assert program[-4:] == [str(sys.executable), "train.py", "--epochs", "1"]
    lines = {line.split()[1]: line.split() for line in done.stderr.splitlines() if line.startswith("gemm")}
    assert lines["achieved_occupancy"] == ["gemm", "achieved_occupancy", "2", "0.625", "0.625", "0.625", *NAME]
    assert lines["theoretical_occupancy"] == [
        *("gemm", "theoretical_occupancy", "2", "0.75", "0.75", "0.75", "registers"),
        *NAME,
    ]
    assert lines["duration"] == ["gemm", "duration", "2", *("1.02", "us") * 3, *NAME]


NAME = ["void", "gemm<(int)4>(float", "*)"]


def test_each_launch_can_be_had_as_data(machine: Machine) -> None:
    words = ("--by", "launch", "--metrics", "duration", "--json", "-o", "out.json", "--launch-count", "2")
    done = machine.strobe("metrics", *words, "--", sys.executable, "train.py")
    assert (done.returncode, done.stdout) == (3, "loss []\n"), done.stderr
    rows = json.loads((machine.folder / "out.json").read_text())["rows"]
    shown = ("kernel", "invocation", "grid", "block", "stream", "device", "metric", "value", "unit")
    assert [[row[name] for name in shown] for row in rows] == [
        ["gemm", invocation, "64x1x1", "256x1x1", 7, 0, "duration", 1024, "ns"] for invocation in (1, 2)
    ]
    assert json.loads(machine.arguments.read_text())[0]["--launch-count"] == "2"


def test_a_program_that_is_killed_ends_the_same_way_for_those_who_started_strobe(machine: Machine) -> None:
    (machine.folder / "train.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert machine.strobe("metrics", "--metrics", "ipc", "train.py").returncode == -signal.SIGKILL


def test_signals_reach_the_program(machine: Machine) -> None:
    (machine.folder / "train.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))\n"
        "print(os.getppid(), flush=True)\ntime.sleep(60)\n"
    )
    clean = {**os.environ, "PATH": f"{machine.folder / 'bin'}:/usr/bin:/bin", "NCU_ARGUMENTS": str(machine.arguments)}
    words = [STROBE, "metrics", "--metrics", "ipc", "train.py"]
    with subprocess.Popen(words, cwd=machine.folder, env=clean, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        parent = int(started.stdout.readline())
        os.kill(parent, signal.SIGUSR1)  # as `kill -USR1` on the process that stands in between
        begin = time.monotonic()
        assert started.wait() == 9
        assert time.monotonic() - begin < 30


def test_no_permission_is_one_sentence_with_nvidias_page(machine: Machine) -> None:
    said = (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on "
        "the target device 0. For instructions on enabling permissions see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
    )
    done = machine.strobe("metrics", "--metrics", "ipc", "train.py", NCU_SAYS=said)
    assert (done.returncode, done.stdout) == (3, "loss []\n")
    assert done.stderr.splitlines() == [
        "strobe: this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
        "strobe: Run it as root, or let the administrator allow it: https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    ]


def test_what_was_measured_before_ncu_gave_up_is_shown(machine: Machine) -> None:
    done = machine.strobe("metrics", "--metrics", "duration", "train.py", NCU_STOPS="1")
    assert (done.returncode, done.stdout) == (77, "")
    assert "strobe: ncu: Failed to profile 'gemm' in process 4711\n" in done.stderr
    assert "gemm    duration         2  1.02 us" in done.stderr


def test_a_torn_table_does_not_change_how_the_program_ends(machine: Machine) -> None:
    done = machine.strobe("metrics", "--metrics", "duration,ipc", "train.py", NCU_SAYS='"ID","a__b.c"\n"1","2","3"')
    assert (done.returncode, done.stdout) == (3, "loss []\n")
    assert "the table of ncu has 3 cells in a line, and 2 in its header" in done.stderr


def test_a_metric_that_ncu_does_not_know_is_named(machine: Machine) -> None:
    machine.ncu.write_text(NCU.replace('"dram__", ', ""))
    done = machine.strobe("metrics", "--metrics", "dram_utilization", "train.py")
    assert (done.returncode, done.stdout) == (125, "")
    assert "does not know the metric 'dram__throughput" in done.stderr
    assert "ncu --query-metrics" in done.stderr


def test_no_ncu_and_no_program_are_told_in_a_sentence(machine: Machine) -> None:
    machine.ncu.unlink()
    done = machine.strobe("metrics", "--metrics", "ipc", "train.py")
    assert (done.returncode, done.stdout) == (127, "")
    assert "Nsight Compute (ncu) is not installed" in done.stderr
    assert "https://developer.nvidia.com/nsight-compute" in done.stderr
    with pytest.raises(RecordError, match="no-such-program"):
        ncu.measure(["no-such-program"], ["sm__cycles_active.avg"], kernels="")
    assert machine.strobe("metrics", "--metrics", "ipc").returncode == 2


def test_names_are_checked_before_the_program_runs(machine: Machine) -> None:
    done = machine.strobe("metrics", "--metrics", "achieved_ocupancy", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no metric 'achieved_ocupancy'" in done.stderr
    assert "Did you mean achieved_occupancy" in done.stderr
    done = machine.strobe("metrics", "--chip", "GA10B", "--metrics", "dram_utilization", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "GA10B has no counters for 'dram_utilization'" in done.stderr
    assert not machine.arguments.exists()


def test_counters_are_checked_against_the_catalogue(machine: Machine) -> None:
    wheel("nvidia-cuda-cupti")
    done = machine.strobe("metrics", "--metrics", "sm__warps_activ.avg", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean sm__warps_active or " in done.stderr
    done = machine.strobe("metrics", "--metrics", "sm__warps_active.ratio", "train.py")
    assert "sm__warps_active is a counter: .sum, .avg" in done.stderr
    done = machine.strobe("metrics", "--metrics", "sm__cycles_active.avg,launch__registers_per_thread", "train.py")
    assert done.returncode == 3, done.stderr
    assert "not checked" not in done.stderr


def test_without_nvidias_library_counters_are_measured_unchecked_and_it_is_said(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strobe.gpu.nvidia import metric_names

    monkeypatch.setattr(catalogue, "installed", list)
    remark = metric_names.check(["ipc", "sm__no_such_thing.avg"], "GH100")
    assert remark.startswith("not checked whether this exists: sm__no_such_thing.avg (")
    assert "pip install nvidia-cuda-cupti==13.0.85" in remark
    assert metric_names.check(["ipc"], "GH100") == ""
    with pytest.raises(UsageError, match="is incomplete"):
        metric_names.check(["sm__warps_active"], "GH100")


def test_what_there_is_can_be_listed(machine: Machine) -> None:
    wheel("nvidia-cuda-cupti")
    done = machine.strobe("metrics", "--list", "--chip", "GB202", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["dram_read_bytes"]["formula"] == "dram__bytes_op_read.sum"
    assert rows["sm__warps_active"]["type"] == "counter"
    assert "warps in flight" in rows["sm__warps_active"]["meaning"]
    done = machine.strobe("metrics", "--list", "--chip", "GX1")
    assert done.returncode == 2
    assert "GH100" in done.stderr
    done = machine.strobe("metrics", "--list", "--metrics", "achieved_ocupancy")
    assert done.returncode == 2
    assert "Did you mean achieved_occupancy?" in done.stderr


def test_a_table_that_ncu_has_written_elsewhere_can_be_shown(machine: Machine) -> None:
    (machine.folder / "ncu.csv").write_text(TABLE)
    done = machine.strobe("metrics", "--from", "ncu.csv", "--csv", "--columns", "kernel,metric,avg")
    assert done.stdout.splitlines()[:3] == [
        "kernel,metric,avg",
        "gemm,achieved_occupancy,0.455",
        "gemm,dram_read_bytes,1234500000.0",
    ]
    done = machine.strobe("metrics", "--from", "ncu.csv", "--metrics", "ipc")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was measured for 'ipc'" in done.stderr
    (machine.folder / "empty.csv").write_text("==WARNING== No kernels were profiled.\n")
    done = machine.strobe("metrics", "--from", "empty.csv")
    assert done.returncode == 4
    assert "contains no kernels" in done.stderr


def test_what_cannot_be_shown_is_refused_before_the_program_runs(machine: Machine) -> None:
    for words in (("--columns", "no_such"), ("--sort", "no_such"), ("--where", "no_such > 1")):
        done = machine.strobe("metrics", "--metrics", "ipc", *words, "train.py")
        assert (done.returncode, done.stdout) == (2, ""), words
        assert "no_such" in done.stderr
    assert not machine.arguments.exists()


def test_nothing_that_was_measured_is_lost_where_it_cannot_be_written(machine: Machine) -> None:
    done = machine.strobe("metrics", "--metrics", "duration", "-o", "no/such/folder.csv", "train.py")
    assert done.returncode == 3
    assert "cannot write 'no/such/folder.csv'" in done.stderr
    assert "gemm    duration         2  1.02 us" in done.stderr


def test_metrics_can_be_printed_as_nvprof_did(machine: Machine) -> None:
    asked = "achieved_occupancy,sm_efficiency,dram_utilization,dram_read_throughput"
    done = machine.strobe("metrics", "--metrics", asked, "--format", "nvprof", "train.py")
    lines = done.stderr.splitlines()
    assert lines[0].split() == ["Invocations", "Metric", "Name", "Metric", "Description", "Min", "Max", "Avg"]
    assert lines[1] == "    Kernel: void gemm<(int)4>(float *)"
    ends = {line.split()[1]: line.split()[-3:] for line in lines[2:]}
    assert ends["achieved_occupancy"] == ["0.625000"] * 3
    assert ends["sm_efficiency"] == ["8.00%"] * 3
    assert ends["dram_read_throughput"] == ["8B/s"] * 3
    assert next(line for line in lines if "dram_utilization" in line).endswith("Low (1)      Low (1)      Low (1)")


def test_a_listing_of_some_says_how_often_a_kernel_runs(machine: Machine) -> None:
    wheel("nvidia-cuda-cupti")
    asked = "achieved_occupancy,ipc,gld_efficiency,gst_efficiency,dram_utilization"
    done = machine.strobe("metrics", "--list", "--chip", "GV100", "--metrics", asked, "--columns", "name")
    assert set(done.stdout.split()) == {"name", *asked.split(",")}
    assert done.stderr == "strobe: each kernel runs 3 times on GV100 for these\n"


def test_values_kept_beside_a_trace_stand_beside_its_kernels(machine: Machine) -> None:
    events = [
        kernel("void gemm<4>(float*)", 0, 5),
        kernel("void gemm<8>(float*)", 10, 3),
        kernel("void gemm<4>(float*)", 20, 7),
    ]
    trace = profile(machine.folder, *events)
    assert not [name for name in trace.kernels().columns if name.startswith("measured_")]
    asked = "achieved_occupancy,gpu__time_duration.sum"
    done = machine.strobe("metrics", "--metrics", asked, "--trace", str(trace.path), "train.py")
    assert (done.returncode, done.stdout) == (3, "loss []\n"), done.stderr
    rows = {row["name"]: row for row in open_trace(trace.path).kernels().to_pylist()}
    shown = ("calls", "measured_achieved_occupancy", "measured_gpu__time_duration_sum")
    assert [rows["void gemm<4>(float*)"][name] for name in shown] == [2, 0.625, 1024]
    assert [rows["void gemm<8>(float*)"][name] for name in shown] == [1, None, None]
    (trace.path / measured_metrics.FILE).write_text("{}")
    with pytest.raises(TraceError, match="cannot be read"):
        open_trace(trace.path).kernels()


def test_a_trace_that_is_not_there_is_told_before_the_program_runs(machine: Machine) -> None:
    done = machine.strobe("metrics", "--metrics", "ipc", "--trace", "no-such.strobe", "train.py")
    assert done.returncode in (2, 4)
    assert done.stdout == ""
    assert "no-such.strobe" in done.stderr
