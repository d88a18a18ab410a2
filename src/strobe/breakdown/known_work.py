"""Work of the host that is known by its name, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Functions that look up, launch and run what is compiled already, of TorchDynamo, Inductor and Triton.
_RUNS = r"(?!.*(torchinductor_|_inductor/(runtime|output_code)|_dynamo/eval_frame|cache lookup))"
_DO = (
    (
        re.compile(r"^(<built-in (function|method) collect.*|(Python )?gc)$|garbage", re.I),
        "the garbage collector: no gc.collect() in the loop; gc.freeze() after the set-up, a higher gc.set_threshold()",
    ),
    (
        re.compile(r"autotun|do_bench|cudnnFind|cudnnGet\w*Algorithm|benchmark(er|_gpu|_all|_choice|_in_)", re.I),
        "something is tuned again: inputs of few sizes (or padded ones), a cache of the results "
        "(TORCHINDUCTOR_CACHE_DIR, cudnn.benchmark = False for inputs that vary)",
    ),
    (
        re.compile(
            rf"^torch\.compile(:|$)|compile_inner|_compile_fx|^{_RUNS}.*(dynamo|inductor)|"
            r"Module(Load|GetFunction)|triton.*compile",
            re.I,
        ),
        "code is compiled again: find why with strobe compile, or TORCH_LOGS=recompiles,graph_breaks; "
        "torch.compile(dynamic=True), or torch._dynamo.mark_dynamic() for what varies",
    ),
)


def what_to_do(names: Iterable[str]) -> str:
    """Return what to do about functions with such names, "" if none is known."""
    known = list(names)
    return next((text for pattern, text in _DO if any(map(pattern.search, known))), "")
