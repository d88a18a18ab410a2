"""What a GPU can do at most: floating-point operations and bytes a second, from its name and its properties.

Those of other vendors, and NVIDIA's with limits of their own, are in `strobe.gpu.data_sheets`. For the others:

The peak of a type is (multiprocessors) x (clock) x (operations a clock and multiprocessor). Profiles of PyTorch hold
neither clock nor bandwidth: these come from the data sheets, by name. Traces that strobe recorded contain both. The
peak of a GPU that has neither is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strobe.gpu.data_sheets import sheet_of

# Operations a clock and multiprocessor by compute capability, dense; two for each multiplication with addition.
# float64, float32: "Throughput of native arithmetic instructions" in NVIDIA's CUDA C++ programming guide, times two.
# The others, and float64 of tensor cores: the white papers of Volta, Turing, Ampere, Ada, Hopper, Blackwell.
_PER_CLOCK: dict[tuple[int, int], dict[str, int]] = {
    (6, 0): {"float64": 64, "float32": 128, "float16": 256},
    (7, 0): {"float64": 64, "float32": 128, "float16": 1024},
    (7, 5): {"float64": 4, "float32": 128, "float16": 1024, "int8": 2048},
    (8, 0): {"float64": 128, "float32": 128, "tf32": 1024, "float16": 2048, "bfloat16": 2048, "int8": 4096},
    (8, 6): {"float64": 4, "float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "int8": 2048},
    (8, 9): {
        "float64": 4, "float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "float8": 2048, "int8": 2048,
    },
    (9, 0): {
        "float64": 256, "float32": 256, "tf32": 2048, "float16": 4096, "bfloat16": 4096, "float8": 8192, "int8": 8192,
    },
    (10, 0): {
        "float64": 128, "float32": 256, "tf32": 4096, "float16": 8192, "bfloat16": 8192, "float8": 16384,
        "int8": 16384,
    },
    (12, 0): {
        "float64": 4, "float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "float8": 2048, "int8": 2048,
    },
}  # fmt: skip
_ON_TENSOR_CORES = ("tf32", "float16", "bfloat16", "float8", "int8")

# Name, highest clock in MHz (of tensor cores if it is another), bandwidth in GB/s. From the data sheets: these
# clocks give the peaks stated there. The first that fits counts. Where a sheet has peaks with sparsity, half of these.
_BOARDS: tuple[tuple[str, int, int, int], ...] = (
    (r"P100-SXM2", 1480, 1480, 732),
    (r"P100-PCIE", 1303, 1303, 732),
    (r"V100-PCIE|V100S-PCIE", 1380, 1380, 900),
    (r"V100-(SXM[23]|DGXS)", 1530, 1530, 900),
    (r"Tesla T4|\bT4\b", 1590, 1590, 320),
    (r"A[18]00-SXM4?-80GB", 1410, 1410, 2039),
    (r"A[18]00.*80GB.*PCIe|A[18]00-PCIE-80GB", 1410, 1410, 1935),
    (r"A100-(SXM|PCIE|PG509)", 1410, 1410, 1555),
    (r"\bA10\b", 1695, 1695, 600),
    (r"\bA30\b", 1440, 1440, 933),
    (r"RTX A6000", 1800, 1800, 768),
    (r"RTX 3090(?! Ti)", 1695, 1695, 936),
    (r"RTX 4090(?! D)", 2520, 2520, 1008),
    (r"RTX 5090(?! D)", 2407, 2407, 1792),
    (r"RTX 6000 Ada", 2505, 2505, 960),
    (r"\bA40\b", 1740, 1740, 696),
    (r"\bL4\b", 2040, 2040, 300),
    (r"\bL40S\b", 2520, 2520, 864),
    (r"H[18]00 PCIe", 1755, 1620, 2000),
    (r"H100 NVL", 1776, 1545, 3938),
    (r"H200 NVL", 1776, 1545, 4800),
    (r"GH200.*(144|HBM3e)", 1980, 1830, 4900),
    (r"GH200", 1980, 1830, 4000),
    (r"\bB200\b", 1980, 1856, 7700),
    (r"H100.*HBM3|H100-SXM", 1980, 1830, 3350),
    (r"H200(?! NVL)", 1980, 1830, 4800),
)
_NO_BOARD = ("", 0, 0, 0)
# Kernels for float32 that compute with tensor cores (in TF32): names in cuBLAS, cuDNN and CUTLASS. Stricter than
# `kernel_names.uses_tensor_cores`: sm80_xmma_gemm_f32f32_f32f32_f32 does without.
TF32 = re.compile(r"tf32|1688|16816|tensorop|wgmma|nvjet", re.IGNORECASE)


@dataclass(frozen=True)
class Peak:
    """The peak of a GPU for one type; None if unknown."""

    gflops: float | None = None
    gb_s: float | None = None


def uses_tf32(kernel: str) -> bool:
    """Return whether a kernel of this name multiplies float32 on tensor cores."""
    return TF32.search(kernel) is not None


def peak(properties: Mapping[str, object], dtype: str) -> Peak:
    """Return the peak for a type of the GPU with these properties (`deviceProperties` of PyTorch's profiles).

    `dtype`: float32, float16, ...; tf32 for float32 on tensor cores. What a GPU reports of itself counts; that
    tensor cores may run at a lower clock is only in data sheets.
    """
    name = str(properties.get("name", ""))
    if (sheet := sheet_of(name)) is not None:
        own = properties.get("memoryBandwidthKbPerS")
        return Peak(sheet.gflops(dtype), own / 1e6 if isinstance(own, int) and own > 0 else sheet.gb_s)
    _, clock, tensor_clock, sheet_gb_s = next((board for board in _BOARDS if re.search(board[0], name)), _NO_BOARD)
    processors, major, minor = (properties.get(key) for key in ("numSms", "computeMajor", "computeMinor"))
    own_khz, own_kb_s = (properties.get(key) for key in ("coreClockKhz", "memoryBandwidthKbPerS"))
    gb_s = own_kb_s / 1e6 if isinstance(own_kb_s, int) and own_kb_s > 0 else sheet_gb_s
    clocks = [own_khz / 1e3] if isinstance(own_khz, int) and own_khz > 0 else []
    if sheet_mhz := tensor_clock if dtype in _ON_TENSOR_CORES else clock:
        clocks.append(sheet_mhz)
    if not isinstance(processors, int) or not isinstance(major, int) or not isinstance(minor, int) or not clocks:
        return Peak(None, gb_s or None)
    rate = _PER_CLOCK.get((major, minor), {}).get(dtype)
    return Peak(processors * min(clocks) * rate / 1e3 if rate else None, gb_s or None)
