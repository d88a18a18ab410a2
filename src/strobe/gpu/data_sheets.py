"""Peaks of accelerators from their data sheets, for those whose multiprocessors and clocks do not give them.

All are dense, with the fastest units that the type has: matrix or tensor cores, for float32 and float64, too, where the
sheet has them. A device is what programs see as one: half of an MI250 or MI250X, one stack of a Data Center GPU Max
1550.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """A device: `pattern` of its name, TFLOP/s by type, GB/s of its memory, and the document with these numbers."""

    pattern: str
    tflops: dict[str, float]
    gb_s: float
    source: str

    def gflops(self, dtype: str) -> float | None:
        """The peak for a type; float32 on tensor cores that know no TF32 is float32."""
        found = self.tflops.get(dtype, self.tflops.get("float32") if dtype == "tf32" else None)
        return None if found is None else found * 1e3


def _halves(value: float) -> dict[str, float]:
    return {"float16": value, "bfloat16": value}


# The first whose pattern is found in the name counts.
SHEETS: tuple[Sheet, ...] = (
    # Export versions, whose tensor cores or float64 are slower than their clocks would have it.
    Sheet(
        r"\bH20\b",
        {"float64": 1, "float32": 44, "tf32": 74, **_halves(148), "float8": 296, "int8": 296},
        4000,
        "NVIDIA H20 GPU data sheet",
    ),
    Sheet(
        r"\bH800\b(?!.*PCIe)",
        {"float64": 1, "float32": 67, "tf32": 494.7, **_halves(989.4), "float8": 1978.9, "int8": 1978.9},
        3350,
        "NVIDIA H800 Tensor Core GPU data sheet (SXM; without sparsity: half of what it states for tensor cores)",
    ),
    Sheet(
        r"\bMI355X",
        {"float64": 78.6, "float32": 157.3, **_halves(2516.6), "float8": 5033.2, "int8": 5033.2},
        8000,
        "AMD Instinct MI355X GPU data sheet",
    ),
    Sheet(
        r"\bMI350X",
        {"float64": 72.1, "float32": 144.2, **_halves(2306.9), "float8": 4613.7, "int8": 4613.7},
        8000,
        "AMD Instinct MI350X GPU data sheet",
    ),
    Sheet(
        r"\bMI325X",
        {"float64": 163.4, "float32": 163.4, "tf32": 653.7, **_halves(1307.4), "float8": 2614.9, "int8": 2614.9},
        6000,
        "AMD Instinct MI325X accelerator data sheet",
    ),
    Sheet(
        r"\bMI300X",
        {"float64": 163.4, "float32": 163.4, "tf32": 653.7, **_halves(1307.4), "float8": 2614.9, "int8": 2614.9},
        5325,
        "AMD Instinct MI300X accelerator data sheet",
    ),
    Sheet(
        r"\bMI300A",
        {"float64": 122.6, "float32": 122.6, "tf32": 490.3, **_halves(980.6), "float8": 1961.2, "int8": 1961.2},
        5325,
        "AMD Instinct MI300A APU data sheet",
    ),
    Sheet(
        r"\bMI250X",
        {"float64": 47.85, "float32": 47.85, **_halves(191.5), "int8": 191.5},
        1638.4,
        "AMD Instinct MI250X accelerator data sheet, halved: a device is one of its two dies",
    ),
    Sheet(
        r"\bMI250\b",
        {"float64": 45.25, "float32": 45.25, **_halves(181.05), "int8": 181.05},
        1638.4,
        "AMD Instinct MI250 accelerator data sheet, halved: a device is one of its two dies",
    ),
    Sheet(
        r"\bMI210\b",
        {"float64": 45.3, "float32": 45.3, **_halves(181), "int8": 181},
        1638.4,
        "AMD Instinct MI210 accelerator data sheet",
    ),
    Sheet(
        r"\bMI100\b",
        {"float64": 11.5, "float32": 46.1, "float16": 184.6, "bfloat16": 92.3, "int8": 184.6},
        1228.8,
        "AMD Instinct MI100 accelerator data sheet",
    ),
    Sheet(
        r"GPU Max 1550",
        {"float64": 26.2, "float32": 26.2, "tf32": 209.7, **_halves(419.4), "int8": 838.9},
        1638.4,
        "Intel Data Center GPU Max Series, technical overview, halved: a device is one of the two stacks",
    ),
    Sheet(
        r"GPU Max 1100",
        {"float64": 22.2, "float32": 22.2, "tf32": 177.8, **_halves(355.5), "int8": 711},
        1228.8,
        "Intel Data Center GPU Max Series, technical overview (56 cores, 1550 MHz)",
    ),
    Sheet(r"(?i)gaudi ?3|HL-3\d\d", {"bfloat16": 1835, "float8": 1835}, 3700, "Intel Gaudi 3 white paper"),
    Sheet(r"(?i)gaudi ?2|HL-225", {"bfloat16": 432, "float8": 865}, 2450, "Intel Gaudi 2 white paper"),
    Sheet(r"TPU v6( lite|e)", {"bfloat16": 918, "int8": 1836}, 1640, "Google Cloud TPU v6e documentation"),
    Sheet(r"TPU v5( lite|e)", {"bfloat16": 197, "int8": 393}, 819, "Google Cloud TPU v5e documentation"),
    Sheet(r"TPU v5", {"bfloat16": 459, "int8": 918}, 2765, "Google Cloud TPU v5p documentation"),
    Sheet(r"TPU v4(?! lite|i)", {"bfloat16": 275, "int8": 275}, 1200, "Google Cloud TPU v4 documentation"),
)


def sheet_of(name: str) -> Sheet | None:
    """Return the data sheet of a device of this name; None if none is known."""
    return next((sheet for sheet in SHEETS if re.search(sheet.pattern, name)), None)
