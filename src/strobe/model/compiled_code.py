"""Names of regions that show what torch.compile compiled and what it made."""

from __future__ import annotations

import re

# A call of what a frame was compiled to: FRAME and NUMBER, from 0 on.
COMPILED_REGION = re.compile(r"^Torch-Compiled Region: ((?:!\d+/)?\d+)/(\d+)")
# A call of the graph with this hash.
FX_GRAPH = re.compile(r"^## Call CompiledFxGraph (\S+) ##")
# A phase of a compilation: as strobe records it, and in profiles (torch/_dynamo/utils.py).
PHASE = re.compile(r"^torch\.compile: (.+)$|^(.+) \(dynamo_timed\)$")
COMPILATION = "torch.compile"
INDUCTOR_KERNEL = re.compile(r"^(triton_(poi|per|red|tem|for|mm|split_scan)_|cpp_fused_)")


def shows_compiled_code(name: str) -> bool:
    """Whether a region with this name is a compilation, a phase of one, or code that torch.compile made."""
    patterns = (COMPILED_REGION, FX_GRAPH, PHASE, INDUCTOR_KERNEL)
    return name == COMPILATION or any(pattern.match(name) for pattern in patterns)
