"""Ten marks of 24 ms; each copies a batch of 100 MB to the device from pageable memory: the host is blocked for 17 ms.

Kernels of 5.4 ms follow and wait for the copy. Truth: limited by data, that is by its transfer. From pinned memory
(25 GB/s) and a batch ahead, the copy of 4 ms would hide behind the kernels: 17 of 24 ms by construction.
"""

from kineto import event, launch, save
from truth import problem, truth

MARK, COPY, BYTES = 24_000, 16_700, 100_000_000


def copy_to_device(events, number, at):
    """`batch.to(device)`: the operators nest, the host stays in the runtime until the copy is done."""
    ids = {"correlation": number, "External id": number}
    for depth, op in enumerate(("aten::to", "aten::_to_copy", "aten::copy_")):
        events.append(event("cpu_op", op, at + 10 * depth, COPY + 300 - 20 * depth, **{"External id": number}))
    events.append(event("cuda_runtime", "cudaMemcpyAsync", at + 60, COPY + 100, **ids))
    args = {"device": 0, "stream": 7, "bytes": BYTES, "memory bandwidth (GB/s)": round(BYTES / COPY / 1000, 3), **ids}
    events.append(event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 120, COPY, 0, 7, **args))
    for ph, ts, pid, tid in (("s", at + 60, 100, 1), ("f", at + 120, 0, 7)):
        arrow = {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g"}
        events.append(arrow | ({"bp": "e"} if ph == "f" else {}))
    events.append(event("cuda_runtime", "cudaStreamSynchronize", at + COPY + 180, 60))
    return at + COPY + 300


def write(folder):
    events, number = [], 0
    for s in range(10):
        base = s * MARK
        events.append(event("user_annotation", f"ProfilerStep#{s + 3}", base, MARK))
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        events.append(event("user_annotation", name, base + 20, 180))
        number += 1
        at = copy_to_device(events, number, base + 250) + 40
        device = at + 60
        for op, kernel, length in (
            ("aten::cudnn_convolution", "sm90_xmma_fprop_implicit_gemm_tf32f32", 900),
            ("aten::relu", "void at::native::vectorized_elementwise_kernel<ReluKernel>", 200),
            ("aten::addmm", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 800),
            ("aten::mm", "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n", 1_500),
            ("aten::convolution_backward", "sm90_xmma_wgrad_implicit_gemm_tf32f32", 1_700),
        ):
            number += 1
            events.append(event("cpu_op", op, at, 80, **{"External id": number}))
            launch(events, number, at + 40, kernel, device, length)
            device += length
            at += 100
        number += 1
        events.append(event("user_annotation", "Optimizer.step#SGD.step", at, 150))
        events.append(event("cpu_op", "aten::_fused_sgd_", at + 20, 100, **{"External id": number}))
        launch(events, number, at + 60, "void at::native::multi_tensor_apply_kernel<FusedSgdMathFunctor>", device, 300)
        events.append(event("cuda_runtime", "cudaDeviceSynchronize", at + 200, device + 310 - at - 200))
        assert device + 400 < base + MARK
    save(folder, events)
    planted = problem(
        "batches are copied from pageable memory, in line with computing",
        "trace:Memcpy HtoD (Pageable -> Device)",
        "data",
        gain=0.7083,
    )
    steps = [(s * MARK * 1000, (s + 1) * MARK * 1000, "train") for s in range(10)]
    return truth(steps, unit="profiler step", limiting="data", problem=planted)
