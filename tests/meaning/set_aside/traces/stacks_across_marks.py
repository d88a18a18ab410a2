"""Five ProfilerStep marks of some 80 ms with python stacks; kernels fill 98 % of each step. Healthy, GPU-bound.

Rows of Python cross the marks: `train_epoch` returns inside the fourth mark and is called again, `<module>` and `main`
span all, and each `step` of the profiler ends one mark and begins the next. Backward launches from its own thread.
"""

import itertools
import random

from kineto import event, launch, save
from truth import truth

LAYERS = 12


def write(folder):
    rng, numbers, ids = random.Random(5), itertools.count(1), itertools.count(1)
    events, steps, cuts = [], [], [1_000]

    def row(name, begin, end, **args):
        events.append(event("python_function", name, begin, end - begin, **{"Python id": next(ids)}, **args))

    def kernel(op, name, at, device, length, tid=1):
        n = next(numbers)
        events.append(event("cpu_op", op, at, 60, tid=tid, **{"External id": n}))
        launch(events, n, at + 30, name, max(device, at + 45), length)
        events[-4]["tid"] = events[-2]["tid"] = tid
        return max(device, at + 45) + length

    device = 0
    for s in range(5):
        base = at = cuts[-1]
        row("torch/utils/data/dataloader.py(732): __next__", at + 200, at + 900)
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        events.append(event("user_annotation", name, at + 220, 650))
        at += 1_000
        row("torch/nn/modules/module.py(1776): _wrapped_call_impl", at, at + LAYERS * 150 + 20)
        row("nn.Module: Encoder_0", at + 5, at + LAYERS * 150 + 15, **{"Python module id": 0})
        first = max(device, at + 55)
        for n in range(LAYERS):
            row(f"nn.Module: Block_{n}", at + 10, at + 145, **{"Python module id": n + 1})
            device = kernel("aten::addmm", "ampere_bf16_s16816gemm_128x128", at + 20, device, rng.randint(2_100, 2_160))
            at += 150
        at += 100
        row("torch/_tensor.py(570): backward", at, at + LAYERS * 200 + 150)
        row("torch/autograd/graph.py(824): _engine_run_backward", at + 20, at + LAYERS * 200 + 140)
        for n in range(LAYERS):
            op = "autograd::engine::evaluate_function: AddmmBackward0"
            events.append(event("cpu_op", op, at + 60 + 200 * n, 190, tid=2, **{"External id": next(numbers)}))
            for name in ("ampere_bf16_s16816gemm_128x64_nn", "ampere_bf16_s16816gemm_64x128_nt"):
                device = kernel("aten::mm", name, at + 70 + 200 * n + (90 if "nt" in name else 0), device, 2_050, tid=2)
        at += LAYERS * 200 + 200
        row("torch/optim/optimizer.py(485): wrapper", at, at + 700)
        events.append(event("user_annotation", "Optimizer.step#AdamW.step", at + 20, 660))
        name = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>"
        device = kernel("aten::_fused_adamw_", name, at + 100, device, 1_900)
        at += 800
        n = next(numbers)
        row("<built-in method item of Tensor object at 0x7f3c5c1a9e50>", at, device + 60)
        events.append(event("cpu_op", "aten::_local_scalar_dense", at + 10, device + 40 - at, **{"External id": n}))
        events.append(event("cuda_runtime", "cudaMemcpyAsync", at + 20, 10, correlation=n, **{"External id": n}))
        args = {"device": 0, "stream": 7, "correlation": n, "External id": n, "bytes": 4}
        events.append(event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", device, 2, 0, 7, **args))
        events.append(event("cuda_runtime", "cudaStreamSynchronize", at + 35, device + 10 - at - 35))
        end = device + 400
        row("torch/profiler/profiler.py(869): step", end - 150, end + 120)
        events.append(event("user_annotation", f"ProfilerStep#{s + 2}", base, end - base))
        events.append(event("gpu_user_annotation", f"ProfilerStep#{s + 2}", first, device - first, 0, 7))
        cuts.append(end)
        steps.append((base * 1000, end * 1000, "train"))
        device += 2

    whole = cuts[-1] + 1_500
    row("train.py(1): <module>", 0, whole)
    row("train.py(52): main", 20, whole - 10)
    row("train.py(23): train_epoch", cuts[0] + 150, cuts[3] + 170)
    row("train.py(23): train_epoch", cuts[3] + 185, cuts[5] + 400)
    save(folder, sorted(events, key=lambda each: each["ts"]))
    return truth(steps, unit="profiler step", limiting="gpu")
