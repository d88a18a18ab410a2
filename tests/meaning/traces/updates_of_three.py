"""A training without marks: twelve updates of three micro-batches each, told apart by `Optimizer.step` ranges alone.

`.item()` of each micro-batch's loss waits for its kernels, which fill some 99 % of the time. Healthy, GPU-bound. A step
goes from `zero_grad` to the end of `Optimizer.step`; micro-batches are the inner level.
"""

import random

from kineto import event, launch, save
from truth import truth


class Tape:
    def __init__(self):
        self.events, self.number, self.at, self.device = [], 0, 500, 0
        self.rng = random.Random(12)

    def op(self, name, kernel, length, host=70, tid=1):
        """An operator of `host` us that launches one kernel, which runs when those before it are done."""
        self.number += 1
        self.events.append(event("cpu_op", name, self.at, host - 10, tid=tid, **{"External id": self.number}))
        begin = max(self.device, self.at + 40)
        launch(self.events, self.number, self.at + 30, kernel, begin, length)
        self.events[-4]["tid"] = self.events[-2]["tid"] = tid
        self.device = begin + length
        self.at += host

    def item(self):
        self.number += 1
        end = self.device + 15
        self.events.append(event("cpu_op", "aten::item", self.at, end + 10 - self.at, **{"External id": self.number}))
        ids = {"correlation": self.number, "External id": self.number}
        self.events.append(event("cuda_runtime", "cudaMemcpyAsync", self.at + 8, 6, **ids))
        args = {"device": 0, "stream": 7, "bytes": 4, **ids}
        self.events.append(event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", self.device, 2, 0, 7, **args))
        self.events.append(event("cuda_runtime", "cudaStreamSynchronize", self.at + 16, end - self.at - 16))
        self.at = end + 20

    def annotated(self, name, call):
        begin = self.at
        self.at += 15
        call()
        self.events.append(event("user_annotation", name, begin, self.at - begin))

    def zero(self):
        self.at += 120

    def adamw(self):
        for _ in range(4):
            self.op("aten::_fused_adamw_", "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 450)

    def micro_batch(self):
        self.annotated("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", lambda: None)
        self.at += 60
        for _ in range(8):
            self.op("aten::addmm", "sm90_xmma_gemm_bf16bf16_bf16f32_tn_n", 600 + self.rng.randrange(40))
            self.op("aten::gelu", "void at::native::vectorized_elementwise_kernel<GeluCUDAKernel>", 90)
        self.op("aten::nll_loss_forward", "void at::native::nll_loss_forward_reduce_cuda_kernel_2d", 20)
        for _ in range(8):
            self.op("aten::gelu_backward", "void at::native::vectorized_elementwise_kernel<GeluBackward>", 110, tid=2)
            self.op("aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_nn_n", 610, tid=2)
            self.op("aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_nt_n", 590 + self.rng.randrange(40), tid=2)
        self.item()


def write(folder):
    tape = Tape()
    cuts = [tape.at]
    for _ in range(12):
        tape.annotated("Optimizer.zero_grad#AdamW.zero_grad", tape.zero)
        for _ in range(3):
            tape.micro_batch()
        tape.annotated("Optimizer.step#AdamW.step", tape.adamw)
        cuts.append(tape.at)
    tape.events.append(event("cuda_runtime", "cudaDeviceSynchronize", tape.at + 5, max(tape.device - tape.at, 20)))
    save(folder, tape.events)
    steps = [(begin * 1000, end * 1000, "train") for begin, end in zip(cuts, cuts[1:])]
    return truth(steps, unit="optimizer update", limiting="gpu", levels={"micro-batch": 36})
