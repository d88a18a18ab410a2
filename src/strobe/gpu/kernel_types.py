"""What a kernel computes, as far as its name shows: a matrix product, a convolution, a reduction, ..."""

from __future__ import annotations

import re

from strobe.gpu.kernel_names import short_name, telling_words

# Names of cuBLAS, cuDNN, CUTLASS, rocBLAS, PyTorch, Apex, FlashAttention, FlashInfer, vLLM, SGLang, Inductor. The first
# that fits decides: kernels of convolutions and attention are made of matrix products, and their names have the words
# of both.
_TYPES = (
    ("KV cache", r"reshape_and_cache|concat_and_cache|store_?kv|(set|append|copy|swap)_\w*(kv|blocks)|_kv_cache_"),
    ("attention", r"flash(?!infer)|fmha|attention|attn|sdpa|paged_?kv|\bmla_|merge_?states"),
    ("convolution", r"conv(?!ert)|scudnn|winograd|[fdw](prop|grad)_|implicit_gemm|im2col|col2im"),
    ("Fourier transform", r"fft"),
    ("matrix product", r"gemm|gemv|nvjet|\bbmm_|cijk_|matmul|split_?k|tensorop|wgmma|dot_kernel"),
    ("normalisation", r"norm|\bbn_|_bn_"),
    ("softmax", r"softmax|nll_loss|cross_?entropy"),
    ("pooling", r"pool"),
    ("optimizer", r"adam|sgd|lamb_|rmsprop|adagrad"),
    ("sort and scan", r"sort|radix|topk|scan|histogram"),
    ("rotary embedding", r"rotary|\brope_"),
    ("index", r"index|gather|scatter|embedding"),
    ("random numbers", r"distribution|dropout|philox|random"),
    ("reduction", r"reduce|reduction|welford|triton_(red|per)_"),
    ("copy", r"copy|transpose|nchw|nhwc|memset|fill|pad_"),
    ("elementwise", r"elementwise|pointwise|multi_tensor_apply|unrolled|triton_poi_|act_and_mul"),
)
_PATTERNS = tuple((type, re.compile(pattern, re.IGNORECASE)) for type, pattern in _TYPES)


def kernel_type(name: str, *, communicates: bool) -> str | None:
    """Return what a kernel of this name computes, or `communication`; None where the name does not show it.

    The short name decides. Where it shows nothing (`Kernel<cutlass_80_tensorop_s1688gemm...>`), the arguments of its
    template do: a function object there is what an element is computed with, not what the kernel does with elements.
    """
    if communicates:
        return "communication"
    for text in (short_name(name), " ".join(telling_words(name))):
        for type, pattern in _PATTERNS:
            if pattern.search(text):
                return type
    return None
