"""What torch.autograd.profiler.emit_nvtx writes into the text of a range."""

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
    """Return the name of a range, and what is said behind it: nothing where it is no text of emit_nvtx.

    Keys: `sequence_number`, `record_function_id`, `shapes`, `inputs` (operator and output that each input is of).
    """
    found = _TEXT.fullmatch(text) if ", op_id = " in text else None
    if not found:
        return text, {}
    return found["name"], {key: said for key, said in found.groupdict().items() if key != "name" and said is not None}
