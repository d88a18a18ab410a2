"""What follows from the name of a kernel: its short form, and whether it computes on tensor cores."""

from __future__ import annotations

import re

# The list of torch-tb-profiler and PyProf, and later ones: CUTLASS 3, Hopper's wgmma, cuBLAS' nvjet, AMD's MFMA.
_TENSOR_CORES = re.compile(
    r"h884|s884|h1688|s1688|hmma|i8816|16816|c1688|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1"
    r"|direct_group|xmma_(gemm|sparse_gemm|implicit_gemm|sparse_conv|warp_specialized_implicit_gemm)|sm[89]\d_xmma"
    r"|tensorop|wgmma|nvjet|cutlass::device_kernel|mfma|cijk_|flash_(fwd|bwd)|fmha",
    re.IGNORECASE,
)

# The beginning of a name as the linker knows it (Itanium ABI): a name, or name spaces and a name, each with its length.
_MANGLED = re.compile(r"_ZN?(?=\d)")
_LENGTH = re.compile(r"\d+")


def uses_tensor_cores(name: str) -> bool:
    """Return whether a kernel of this name computes on tensor cores (AMD: matrix cores)."""
    return bool(_TENSOR_CORES.search(name))


def short_name(name: str) -> str:
    """Return the name of a kernel without result, name spaces, templates and arguments.

    `void at::native::reduce_kernel<512, 1>(int)` is `reduce_kernel`; so is `_ZN2at6native13reduce_kernelILi512EEEvi`.
    """
    if found := _MANGLED.match(name):
        return _last_of_mangled(name, found.end()) or name
    plain, depth = [], 0
    name = name.replace("(anonymous namespace)", "")
    for at, letter in enumerate(name):
        if letter in "<(":
            depth += 1
        elif letter in ">)" and depth:
            depth -= name[at - 1 : at + 1] != "->"
        elif not depth:
            plain.append(letter)
    words = "".join(plain).strip().split(" ")
    return next((last for word in reversed(words) if (last := word.rpartition("::")[2])), name)


def _last_of_mangled(name: str, at: int) -> str:
    last = ""
    while found := _LENGTH.match(name, at):
        end = found.end() + int(found[0])
        last, at = name[found.end() : end], end
    return last
