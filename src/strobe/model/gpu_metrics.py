"""Hardware metrics of GPU kernels: the names that nvprof gave them, and what answers them on today's chips.

Most of them are in NVIDIA's guide for users of nvprof ("nvprof Metric Comparison" of the Nsight Compute CLI).
A formula is data: `[NUMBER *] COUNTER + ... [/ COUNTER + ...]`. `counters()` returns what must be measured for it,
`value()` the result. RENAMED has the counters that have other names on some chips. A test with NVIDIA's own libraries
checks that every counter exists on every chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuMetric:
    """One metric: the name that people know, its unit ("" for counts and ratios), formula and meaning."""

    name: str
    unit: str
    formula: str
    about: str


_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}"
_OPS = {"gld": ("ld", "loads from global memory"), "gst": ("st", "stores to global memory")}
_THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
_STALLED = "smsp__warp_issue_stalled_{}_per_warp_active.pct"
_OF_PEAK, _OF_PEAK_ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"


def _global_memory() -> Iterable[GpuMetric]:
    for name, (op, what) in _OPS.items():
        sectors = _GLOBAL.format("sectors", op)
        data = f"smsp__sass_data_bytes_mem_global_op_{op}.sum.per_second"
        per_request = f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio"
        yield GpuMetric(
            f"{name}_efficiency",
            "%",
            f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct",
            f"bytes that {what} asked for, of those that were moved",
        )
        yield GpuMetric(
            f"{name}_throughput", "byte/s", f"{_GLOBAL.format('bytes', op)}.sum.per_second", f"bytes moved by {what}"
        )
        yield GpuMetric(f"{name}_requested_throughput", "byte/s", data, f"bytes that {what} asked for")
        yield GpuMetric(f"{name}_transactions", "", f"{sectors}.sum", f"sectors of 32 bytes moved by {what}")
        yield GpuMetric(f"{name}_transactions_per_request", "", per_request, f"sectors for each of the {what}")


def _dram() -> Iterable[GpuMetric]:
    for op in ("read", "write"):
        done = {"read": "read from", "write": "written to"}[op]
        yield GpuMetric(f"dram_{op}_throughput", "byte/s", f"dram__bytes_{op}.sum.per_second", f"{done} device memory")
        yield GpuMetric(f"dram_{op}_transactions", "", f"dram__sectors_{op}.sum", f"sectors {done} device memory")
        yield GpuMetric(f"dram_{op}_bytes", "byte", f"dram__bytes_{op}.sum", f"bytes {done} device memory")


def _second_level() -> Iterable[GpuMetric]:
    def both(name: str, about: str, *counters: str) -> Iterable[GpuMetric]:
        sums = " + ".join(f"{each}.sum" for each in counters)
        rates = " + ".join(f"32 * {each}.sum.per_second" for each in counters)  # a sector has 32 bytes
        yield GpuMetric(f"{name}_transactions", "", sums, f"sectors {about}")
        yield GpuMetric(f"{name}_throughput", "byte/s", rates, f"bytes {about}")

    atomics = ("lts__t_sectors_op_atom", "lts__t_sectors_op_red")
    for op in ("read", "write"):
        done = {"read": "read from", "write": "written to"}[op]
        yield from both(f"l2_{op}", f"{done} the second-level cache, with atomics", f"lts__t_sectors_op_{op}", *atomics)
        from_l1 = f"{done} the second-level cache by the first-level caches"
        for name in ("l2_tex", "l2_l1", "l2_texture"):
            yield from both(f"{name}_{op}", from_l1, f"lts__t_sectors_srcunit_tex_op_{op}")
        yield from both(f"sysmem_{op}", f"{done} the host's memory", f"lts__t_sectors_aperture_sysmem_op_{op}")
        hits = f"sectors {done} the second-level cache that were there"
        yield GpuMetric(f"l2_tex_{op}_hit_rate", "%", f"lts__t_sector_op_{op}_hit_rate.pct", hits)
    for op, short, done in (("load", "ld", "read from"), ("store", "st", "written to")):
        local = f"l1tex__t_sectors_pipe_lsu_mem_local_op_{short}"
        yield from both(f"local_{op}", f"{done} local memory (spilled registers, arrays of a thread)", local)


def _shared_memory() -> Iterable[GpuMetric]:
    for op, short in (("load", "ld"), ("store", "st")):
        waves = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"
        yield GpuMetric(f"shared_{op}_transactions", "", waves, f"wavefronts of {op}s of shared memory")
        # A wavefront moves up to 128 bytes, and which part of them is not known: no bytes.
        rate = f"{waves}.per_second"
        yield GpuMetric(f"shared_{op}_throughput", "wavefront/s", rate, f"wavefronts of {op}s of shared memory")


def _floating_point() -> Iterable[GpuMetric]:
    for kind, letter, words in (("sp", "f", "single"), ("dp", "d", "double"), ("hp", "h", "half")):
        add, mul, fma = (_THREADS.format(letter + each) for each in ("add", "mul", "fma"))
        what = f"{words}-precision operations outside the tensor cores"
        yield GpuMetric(f"flop_count_{kind}", "", f"{add} + {mul} + 2 * {fma}", f"{what}; a fused multiply-add is two")
        for each, counter in (("add", add), ("mul", mul), ("fma", fma)):
            yield GpuMetric(f"flop_count_{kind}_{each}", "", counter, f"{words}-precision operations: {each}")
        peak = f"smsp__sass_thread_inst_executed_ops_{letter}add_{letter}mul_{letter}fma_pred_on.{_OF_PEAK}"
        yield GpuMetric(f"flop_{kind}_efficiency", "%", peak, f"{what}, of the most that the chip can do")


def _stalls() -> Iterable[GpuMetric]:
    for name, reasons, about in (
        ("memory_dependency", ("long_scoreboard",), "data from memory"),
        ("sync", ("barrier", "membar"), "other warps at a barrier, or a memory fence"),
        ("exec_dependency", ("short_scoreboard", "wait"), "the result of another instruction"),
        ("inst_fetch", ("no_instruction",), "the next instruction"),
        ("constant_memory_dependency", ("imc_miss",), "constant memory"),
        ("memory_throttle", ("drain", "lg_throttle"), "room in the queues of memory"),
        ("pipe_busy", ("math_pipe_throttle", "mio_throttle"), "a busy unit"),
        ("texture", ("tex_throttle",), "room in the queue of textures"),
        ("not_selected", ("not_selected",), "its turn: another warp was ready, too"),
        ("sleeping", ("sleeping",), "the end of its sleep"),
        ("other", ("dispatch_stall", "misc"), "something else"),
    ):
        formula = " + ".join(_STALLED.format(reason) for reason in reasons)
        yield GpuMetric(f"stall_{name}", "%", formula, f"warps that wait for {about}")


def _units() -> Iterable[GpuMetric]:
    for name, counter, about in (
        ("dram_utilization", f"dram__throughput.{_OF_PEAK}", "device memory"),
        ("l2_utilization", f"lts__t_sectors.{_OF_PEAK}", "the second-level cache"),
        ("shared_utilization", f"l1tex__data_pipe_lsu_wavefronts_mem_shared.{_OF_PEAK}", "shared memory"),
        ("tensor_precision_fu_utilization", f"sm__inst_executed_pipe_tensor.{_OF_PEAK_ACTIVE}", "the tensor cores"),
        ("single_precision_fu_utilization", f"smsp__pipe_fma_cycles_active.{_OF_PEAK_ACTIVE}", "units for floats"),
        ("double_precision_fu_utilization", f"smsp__inst_executed_pipe_fp64.{_OF_PEAK_ACTIVE}", "units for doubles"),
        ("ldst_fu_utilization", f"smsp__inst_executed_pipe_lsu.{_OF_PEAK_ACTIVE}", "units that load and store"),
        ("special_fu_utilization", f"smsp__inst_executed_pipe_xu.{_OF_PEAK_ACTIVE}", "units for sin, exp, ..."),
    ):
        yield GpuMetric(name, "of 10", f"0.1 * {counter}", f"use of {about}, 0 to 10")


TABLE = (
    GpuMetric(
        "achieved_occupancy",
        "",
        f"0.01 * sm__warps_active.{_OF_PEAK_ACTIVE}",
        "warps at work of those that fit onto a multiprocessor, 0 to 1",
    ),
    GpuMetric("ipc", "", "sm__inst_executed.avg.per_cycle_active", "instructions of a multiprocessor in a cycle"),
    GpuMetric("issued_ipc", "", "sm__inst_issued.avg.per_cycle_active", "instructions issued in a cycle"),
    GpuMetric(
        "sm_efficiency", "%", f"sm__cycles_active.{_OF_PEAK}", "time in which a multiprocessor has a warp, of all time"
    ),
    GpuMetric(
        "issue_slot_utilization", "%", f"smsp__issue_active.{_OF_PEAK_ACTIVE}", "cycles in which something is issued"
    ),
    GpuMetric(
        "eligible_warps_per_cycle", "", "smsp__warps_eligible.sum.per_cycle_active", "warps that could go on in a cycle"
    ),
    GpuMetric(
        "warp_execution_efficiency",
        "%",
        "3.125 * smsp__thread_inst_executed_per_inst_executed.ratio",
        "threads of a warp (of 32) that take part in an instruction",
    ),
    GpuMetric(
        "branch_efficiency",
        "%",
        "smsp__sass_average_branch_targets_threads_uniform.pct",
        "branches that all threads of a warp take alike",
    ),
    GpuMetric("inst_executed", "", "smsp__inst_executed.sum", "instructions executed by warps"),
    GpuMetric("inst_issued", "", "smsp__inst_issued.sum", "instructions issued to warps"),
    GpuMetric("inst_per_warp", "", "smsp__average_inst_executed_per_warp.ratio", "instructions of a warp"),
    *(
        GpuMetric(name, "", _THREADS.format(op), f"instructions of threads: {about}")
        for name, op, about in (
            ("inst_fp_16", "fp16", "half precision"),
            ("inst_fp_32", "fp32", "single precision"),
            ("inst_fp_64", "fp64", "double precision"),
            ("inst_integer", "integer", "integers"),
            ("inst_bit_convert", "conversion", "conversions"),
            ("inst_control", "control", "branches and jumps"),
            ("inst_compute_ld_st", "memory", "loads and stores"),
            ("inst_inter_thread_communication", "inter_thread_communication", "exchange between threads"),
            ("inst_misc", "misc", "everything else"),
        )
    ),
    *_global_memory(),
    *(
        GpuMetric(
            f"l1_cache_{memory}_hit_rate",
            "%",
            f"l1tex__t_sector_pipe_lsu_mem_{memory}_op_ld_hit_rate.pct",
            f"loads from {memory} memory that the first-level cache answers",
        )
        for memory in ("global", "local")
    ),
    *(
        GpuMetric(name, "%", "l1tex__t_sector_hit_rate.pct", "sectors that the first-level cache has")
        for name in ("global_hit_rate", "tex_cache_hit_rate")
    ),
    *_dram(),
    *_second_level(),
    GpuMetric(
        "l2_tex_hit_rate",
        "%",
        "100 * lts__t_sectors_srcunit_tex_lookup_hit.sum / lts__t_sectors_srcunit_tex.sum",
        "sectors asked for by first-level caches that the second-level cache has",
    ),
    GpuMetric("l2_hit_rate", "%", "lts__t_sector_hit_rate.pct", "sectors that the second-level cache has"),
    *_shared_memory(),
    GpuMetric(
        "shared_efficiency",
        "%",
        "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
        "bytes of shared memory asked for, of those that its wavefronts could move",
    ),
    *_floating_point(),
    *_units(),
    *_stalls(),
    GpuMetric(
        "tensor_active",
        "%",
        f"sm__pipe_tensor_cycles_active.{_OF_PEAK_ACTIVE}",
        "cycles in which the tensor cores are at work, of the multiprocessor's",
    ),
    GpuMetric(
        "tensor_throughput",
        "%",
        f"sm__pipe_tensor_cycles_active.{_OF_PEAK}",
        "cycles in which the tensor cores are at work, of all that the kernel takes",
    ),
    GpuMetric("sm_throughput", "%", f"sm__throughput.{_OF_PEAK}", "the busiest unit of multiprocessors, of its peak"),
    GpuMetric(
        "compute_memory_throughput",
        "%",
        f"gpu__compute_memory_throughput.{_OF_PEAK}",
        "the busiest part of the memory system, of its peak",
    ),
    GpuMetric("duration", "ns", "gpu__time_duration.sum", "time that the kernel ran, as ncu measures it"),
    GpuMetric("elapsed_cycles", "", "sm__cycles_elapsed.max", "cycles that the kernel took"),
)
METRICS: Mapping[str, GpuMetric] = {metric.name: metric for metric in TABLE}

# Groups stand for several names; `usual` is what is measured where nothing is asked for.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "usual": (
        *("achieved_occupancy", "ipc", "gld_efficiency", "gst_efficiency", "dram_utilization"),
        "tensor_precision_fu_utilization",
    ),
    "occupancy": ("achieved_occupancy", "sm_efficiency", "eligible_warps_per_cycle"),
    "instructions": (
        *("ipc", "issued_ipc", "inst_executed", "inst_per_warp"),
        *("issue_slot_utilization", "warp_execution_efficiency", "branch_efficiency"),
    ),
    "memory": (
        *("dram_utilization", "dram_read_throughput", "dram_write_throughput", "dram_read_bytes", "dram_write_bytes"),
        *("gld_efficiency", "gst_efficiency", "gld_throughput", "gst_throughput"),
        *("l1_cache_global_hit_rate", "l2_hit_rate", "l2_utilization", "shared_efficiency", "shared_utilization"),
    ),
    # What `strobe utilisation` needs to know what the work of a kernel takes at least.
    "roofline": (
        *("flop_count_sp", "flop_count_dp", "flop_count_hp", "dram_read_bytes", "dram_write_bytes"),
        *("duration", "tensor_active", "tensor_throughput"),
    ),
    "tensor": ("tensor_precision_fu_utilization", "tensor_active", "duration"),
    "stalls": tuple(metric.name for metric in TABLE if metric.name.startswith("stall_")),
    "all": tuple(METRICS),
}

_BLACKWELL = ("GB100", "GB102", "GB110")
_BLACKWELL_RTX = ("GB202", "GB203", "GB205", "GB206", "GB207")
_INTEGRATED = ("GV11B", "GA10B", "GB10B", "GB20B")
# Counters that begin so are called otherwise on these chips. Those of dram since CUDA 13.0.
RENAMED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (_BLACKWELL + _BLACKWELL_RTX, "lts__t_sectors_aperture_sysmem_op_", "syslts__t_sectors_aperture_sysmem_op_"),
    (_BLACKWELL_RTX, "dram__bytes_", "dram__bytes_op_"),
    (_BLACKWELL_RTX, "dram__sectors_", "dram__sectors_op_"),
)
# Counters with this in their names do not exist on these chips: integrated GPUs have the host's memory.
ABSENT: tuple[tuple[tuple[str, ...], str], ...] = (
    (_INTEGRATED, "dram__"),
    (_BLACKWELL + _BLACKWELL_RTX + ("GB10B", "GB20B"), "issue_stalled_imc_miss"),
)

# Chips by compute capability: one of those that have it.
CHIPS: Mapping[str, str] = {
    "7.0": "GV100",
    "7.2": "GV11B",
    "7.5": "TU102",
    "8.0": "GA100",
    "8.6": "GA102",
    "8.7": "GA10B",
    "8.9": "AD102",
    "9.0": "GH100",
    "10.0": "GB100",
    "10.3": "GB110",
    "11.0": "GB10B",
    "12.0": "GB202",
    "12.1": "GB20B",
}

_COUNTER = re.compile(r"[a-z]\w*__\w+(?:\.\w+)*")
_SHAPE = re.compile(r"[a-z0-9]+__[a-z0-9_]+(\.[a-z0-9_]+)*")


def looks_like_counter(name: str) -> bool:
    """Whether a name has the form of today's counters: `sm__warps_active.avg`, `launch__registers_per_thread`."""
    return _SHAPE.fullmatch(name) is not None


def expanded(asked: Iterable[str], chip: str = "") -> list[str]:
    """Return what names and groups stand for, each once, in order; of groups what the chip has."""
    found: dict[str, None] = {}
    for word in asked:
        found |= dict.fromkeys(name for name in GROUPS.get(word, ()) if has(chip, name))
        if word not in GROUPS:
            found[word] = None
    return list(found)


def has(chip: str, name: str) -> bool:
    """Whether a chip has the counters of a metric of the table; yes where nothing else is known."""
    return not any(chip in chips and part in formula(name, chip) for chips, part in ABSENT)


def formula(name: str, chip: str = "") -> str:
    """Return how a metric is made of counters of a chip. A name that is not in the table is a counter itself."""
    text = METRICS[name].formula if name in METRICS else name
    if name in METRICS:
        for chips, old, new in RENAMED:
            if chip in chips:
                text = text.replace(old, new)
    return text


def counters(names: Iterable[str], chip: str = "") -> list[str]:
    """Return the counters of a chip that are needed for metrics, each once, in order."""
    return list(dict.fromkeys(each for name in names for each in _COUNTER.findall(formula(name, chip))))


def value(name: str, measured: Mapping[str, float | None], chip: str = "") -> float | None:
    """Return the value of a metric, in its unit, from measured counters; None if one of them is unknown."""
    sums = []
    for side in formula(name, chip).split(" / "):
        total = 0.0
        for term in side.split(" + "):
            weight, times, counter = term.rpartition(" * ")
            found = measured.get(counter)
            if found is None:
                return None
            total += found * (float(weight) if times else 1.0)
        sums.append(total)
    if len(sums) == 1:
        return sums[0]
    return sums[0] / sums[1] if sums[1] else None


def unit(name: str) -> str | None:
    """Return the unit of a metric of the table; None for counters, whose units the measuring tool reports."""
    return METRICS[name].unit if name in METRICS else None
