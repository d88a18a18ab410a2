"""The texts that torch.autograd.profiler.emit_nvtx gives to ranges."""

from __future__ import annotations

import re

# name[, seq = N], op_id = N[, sizes = [[...], ...]][, input_op_ids = [(N,N), ...]]: torch/csrc/profiler/standalone/
# nvtx_observer.cpp and torch/csrc/profiler/util.cpp.
_TEXT = re.compile(
    r"(?P<name>.+?)(?:, seq = (?P<sequence_number>\d{1,18}))?, op_id = (?P<record_function_id>\d{1,18})"
    r"(?:, sizes = (?P<shapes>\[[^()]*\]))?(?:, input_op_ids = (?P<inputs>\[.*\]))?",
    re.DOTALL,
)


def of_emit_nvtx(text: str) -> tuple[str, dict[str, str]]:
    """Split the text of a range into its name and the fields after it; without fields if emit_nvtx did not write it.

    Keys: `sequence_number`, `record_function_id`, `shapes`, `inputs` (operator and output that each input comes from).
    """
    found = _TEXT.fullmatch(text) if ", op_id = " in text else None
    if not found:
        return text, {}
    return found["name"], {
        key: field for key, field in found.groupdict().items() if key != "name" and field is not None
    }
