"""How files of Ascend's profilers are recognised: by the columns of their first line."""

from __future__ import annotations

import re
from collections.abc import Mapping

# kernel_details.csv of torch_npu and MindSpore, op_summary_*.csv of msprof; microseconds where no unit is named, too.
_KERNELS = (
    {"Name", "Start Time(us)", "Duration(us)", "Accelerator Core"},
    {"Op Name", "Task Start Time(us)", "Task Duration(us)"},
    {"Op Name", "Task Start Time", "Task Duration(us)"},
)
_STATISTIC = {"OP Type", "Core Type", "Count", "Total Time(us)"}
_STEPS = {"Step", "Computing", "Communication(Not Overlapped)", "Free"}
NAMES = ("full_kernel_name", "full_kernel_time", "full_op_name")
# By kind: the name of its file, and the columns that tell it.
MINDSPORE_FILES: Mapping[str, tuple[str, tuple[set[str], ...]]] = {
    "kernels": ("output_timeline_data_{}.txt", ({"op_name", "stream_id", "start_time(ms)", "duration(ms)"},)),
    "sums": (
        "aicore_intermediate_{}_detail.csv",
        tuple({name, "execution_time", "execution_frequency"} for name in NAMES),
    ),
    "types": (
        "aicore_intermediate_{}_type.csv",
        ({"kernel_type", "total_time", "execution_frequency"}, {"op_type", "execution_time", "execution_frequency"}),
    ),
    "ai cpu": ("aicpu_intermediate_{}.csv", ({"serial_number", "dispatch_time", "run_start", "run_end"},)),
    "steps": (
        "step_trace_raw_{}_detail_time.csv",
        ({"step_num", "start_point", "end_point", "fp_point", "bp_point", "iteration_interval"},),
    ),
    "pipeline": ("minddata_pipeline_raw_{}.csv", ({"op_id", "op_type", "output_queue_size", "sample_interval"},)),
    "queues": ("pipeline_profiling_{}.json", ()),
    "operators": ("framework_raw_{}.csv", ()),
}
_QUEUES = re.compile(rb'\s*\{\s*"(op_info|sampling_interval)"')


def csv_kind(cells: list[str]) -> str:
    """Return what a CSV file with these columns has: kernels, a statistic, steps; empty if it is none of these."""
    names = set(cells)
    if any(columns <= names for columns in _KERNELS):
        return "kernels"
    return "statistic" if names >= _STATISTIC else "steps" if names >= _STEPS else ""


def mindspore_kind(cells: list[str], head: bytes) -> str:
    """Return the kind of a file by the columns in its first line, or by its beginning; empty if it is none of these."""
    if _QUEUES.match(head) and b'"op_info"' in head and b'"output_queue"' in head:
        return "queues"
    names = set(cells)
    return next((kind for kind, (_, columns) in MINDSPORE_FILES.items() if any(each <= names for each in columns)), "")
