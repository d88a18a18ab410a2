"""What follows from the names of kernels: their short forms, and whether they compute on tensor cores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from strobe.tables.lazy_pyarrow import pa

# The list of torch-tb-profiler and PyProf, and later ones: CUTLASS 3, Hopper's wgmma, cuBLAS' nvjet, AMD's MFMA.
_TENSOR_CORES = re.compile(
    r"h884|s884|h1688|s1688|hmma|i8816|16816|c1688|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1"
    r"|direct_group|_tensor\d+x\d+x\d+|xmma_(gemm|sparse_gemm|implicit_gemm|sparse_conv|warp_specialized_implicit_gemm)|sm[89]\d_xmma"
    r"|tensorop|wgmma|nvjet|cutlass::device_kernel|mfma|cijk_|flash_(fwd|bwd)|fmha",
    re.IGNORECASE,
)

# The beginning of a name as the linker knows it (Itanium ABI): a name, or name spaces and a name, each with its length.
_MANGLED = re.compile(r"_ZN?(?=\d)")
_LENGTH = re.compile(r"\d+")

# What tells kernels apart that have one short name: words and numbers, but for those that any of them may have.
_MOST_WORDS = 4
_LONGEST = 80
_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_LAMBDA = re.compile(r"\{lambda\(([^()]*)\)#\d+\}")
_PARAMETERS = re.compile(r"\([^()]*\)")
_CLONE = re.compile(r"\s+(?:\[clone [^\[\]]*\]|\(\.kd\))$")  # what is behind the parameters: of AMD's compiler
_NOTHING = frozenset(
    ("void", "const", "operator", "lambda", "at", "native", "detail", "std", "cute", "c10", "C", "type")
)
_PLAIN = re.compile(
    r"\d+u?|bool|char|short|int|long|unsigned|signed|half|float|double|true|false|c10|BFloat16|Half|Float8\w*"
    r"|__half\w*|__nv_\w+|u?int\d*(_t)?|float\d*(_t)?|size_t|(b?float|half|tfloat32)\w*_t"
)


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
    name = _CLONE.sub("", name.replace("(anonymous namespace)", ""))
    for at, letter in enumerate(name):
        if letter in "<(":
            depth += 1
        elif letter in ">)" and depth:
            depth -= name[at - 1 : at + 1] != "->"
        elif not depth:
            plain.append(letter)
    words = "".join(plain).strip().split(" ")
    return next((last for word in reversed(words) if (last := word.rpartition("::")[2])), name)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the short names of the kernels of a trace: those that would be equal keep what tells them apart.

    `device_kernel<FlashAttnBwd>`, `vectorized_elementwise_kernel<CUDAFunctor_add, float>`: words of their templates,
    the rarest ones, in the order of the name. Where these do not tell, the arguments of the template as they are; else
    they are numbered.
    """
    alike: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        alike.setdefault(short_name(name), []).append(name)
    found = {}
    for short, members in alike.items():
        words = {name: telling_words(name) for name in members} if len(members) > 1 else {}
        everywhere = set.intersection(*map(set, words.values())) if words else set()
        often = Counter(word for name in members for word in set(words.get(name, ())))
        shown = {name: _with(short, _chosen(name, words, everywhere, often) if words else []) for name in members}
        taken = Counter(shown.values())
        seen = Counter[str]()
        for name in members:
            told = shown[name] if taken[shown[name]] == 1 else _with_template(short, name) or shown[name]
            seen[told] += 1
            found[name] = f"{told} #{seen[told]}" if seen[told] > 1 else told
    return found


def _with(short: str, words: list[str]) -> str:
    return f"{short}<{', '.join(words)}>" if words else short


def _with_template(short: str, name: str) -> str:
    """Return a short name with the arguments of the template as they are; "" if these are long, or there are none."""
    at = name.find(short + "<")
    end = name.find(">", at)
    found = name[at : end + 1]
    return found if at >= 0 and end >= 0 and "<" not in found[len(short) + 1 :] and len(found) <= _LONGEST else ""


def _chosen(name: str, words: dict[str, list[str]], everywhere: set[str], often: Counter[str]) -> list[str]:
    """Return the words that tell a kernel from the others with its short name, at most _MOST_WORDS, in order."""
    own = [word for word in dict.fromkeys(words[name]) if word not in everywhere]
    left = [set(other) for key, other in words.items() if key != name]
    chosen: list[str] = []
    while left and own and len(chosen) < _MOST_WORDS:
        # A function object or a name space tells more than the type or the size that it works on.
        word = min(own, key=lambda each: (_PLAIN.fullmatch(each) is not None and not chosen, often[each]))
        own.remove(word)
        fewer = [other for other in left if word in other]
        if len(fewer) < len(left) or not chosen:
            chosen.append(word)
        left = fewer
    return [word for word in dict.fromkeys(words[name]) if word in chosen]


def telling_words(name: str) -> list[str]:
    """Return the words and numbers in the result, name spaces and templates of a kernel, without its parameters."""
    if found := _MANGLED.match(name):
        return _words_of_mangled(name, found.end())
    depth, end = 0, len(name)
    name = name.replace("(anonymous namespace)::", "").replace("->", " ")
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and not depth:
            end = at
            break
    # Of a lambda, what it is called with tells what it computes.
    text = _LAMBDA.sub(r" \1 ", name[:end])
    return [word for word in _WORD.findall(_PARAMETERS.sub(" ", text)) if word not in _NOTHING]


def _words_of_mangled(name: str, at: int) -> list[str]:
    """Return the words of a name as the linker knows it, wherever they are: each follows its length."""
    words = []
    while found := _LENGTH.search(name, at):
        word = name[found.end() : found.end() + int(found[0][:6])]
        # `Li4E` is the number 4 among the arguments of a template.
        is_number = name[found.start() - 2 : found.start() - 1] == "L" and name[found.end() : found.end() + 1] == "E"
        is_word = not is_number and len(word) == int(found[0][:6]) and _WORD.fullmatch(word) is not None
        words.append(word if is_word else found[0])
        at = found.end() + (len(word) if is_word else 0)
    return words


def _last_of_mangled(name: str, at: int) -> str:
    last = ""
    while found := _LENGTH.match(name, at):
        end = found.end() + int(found[0])
        last, at = name[found.end() : end], end
    return last


def with_short_names(rows: pa.Table) -> pa.Table:
    """Return rows of a table with what tells kernels of equal short names apart in the column `kernel`.

    They have the whole names in `name`; copies have these in `kernel`, too, and keep them.
    """
    names, kernels = (rows.column(column).to_pylist() for column in ("name", "kernel"))
    short = short_names(name for name, kernel in zip(names, kernels, strict=True) if kernel == short_name(name))
    told = [short.get(name, kernel) for name, kernel in zip(names, kernels, strict=True)]
    at = rows.column_names.index("kernel")
    return rows.set_column(at, rows.schema.field(at), pa.array(told, pa.string()))
