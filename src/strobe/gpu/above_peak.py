"""Why something was faster than the peak of its device: the likely reason, in words."""

from __future__ import annotations

import json
from collections.abc import Collection

# Boost clocks are above the clock of a data sheet by up to this; more has another reason.
_BOOST = 1.15


def reason_above_compute(efficiency: float, shapes: str, kernels: Collection[str]) -> str:
    """Return why more operations a second than the peak were counted.

    `shapes`: of the operands, as PyTorch records them. `kernels`: the names of those in the trace.
    """
    names = " ".join(kernels).lower()
    if _is_3x3(shapes) or ("winograd" in names and shapes.count("[") > 4):
        seen = "kernels of this trace are named so" if "winograd" in names else "cuDNN and MIOpen may choose it"
        return f"3x3 convolutions: Winograd's algorithm needs 2.25 to 4 times fewer operations ({seen})"
    if "spmma" in names or "sparse" in names or "_sp_" in names:
        return "sparsity: kernels of this trace skip half of the operations, the peak is that of dense ones"
    if efficiency <= _BOOST:
        return "a boost clock above the one that the peak is for"
    return "another type of operands or units than the peak is for, or fewer operations than the shapes have"


def reason_above_bandwidth() -> str:
    """Return why more bytes a second than the bandwidth of the memory were counted."""
    return "hits in the L2 cache: operands that were used just before are not read from memory"


def _is_3x3(shapes: str) -> bool:
    """Return whether the second operand is the weight of a convolution of 3x3."""
    try:
        weight = json.loads(shapes)[1]
        return [int(size) for size in weight[-2:]] == [3, 3] and len(weight) == 4
    except (ValueError, LookupError, TypeError):
        return False
