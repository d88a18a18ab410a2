"""A training on the fake GPU of tests/gpu: kernels on two streams, copies, a CUDA graph, memory, events, waits."""

import os
import time

import fake_cuda

import strobe

gpu = fake_cuda.Gpu()
with open("pid", "w") as file:  # which the fake NVML reads
    file.write(str(os.getpid()))
gpu.function("gemm_f16", registers=128, static_shared=4096)
compute, copies = gpu.stream(non_blocking=True), gpu.stream(non_blocking=True)
weights = gpu.allocate(1 << 22)
host = gpu.allocate_host(1 << 16)
with gpu.capture(compute) as graph:
    gpu.launch("bias_add", stream=compute, ns=30_000)
    gpu.launch("relu", stream=compute, ns=20_000)
executable = gpu.instantiate(graph)


def load(number):
    time.sleep(0.001 if number % 7 else 0.004)
    gpu.memcpy(1, 1 << 20, copies, ns=400_000)
    return gpu.event(copies)


def forward():
    for layer in range(3):
        gpu.launch("gemm_f16", grid=(64 + layer, 2, 1), block=(256, 1, 1), stream=compute, ns=300_000, shared=1024)
        gpu.launch_graph(executable, compute)


def backward():
    for _layer in range(3):
        gpu.launch("gemm_f16_dgrad", grid=(128, 1, 1), block=(128, 1, 1), stream=compute, ns=350_000)
        gpu.launch("elementwise", grid=(16, 1, 1), stream=compute, ns=15_000, runtime=False)
    gpu.memset(4096, 0, compute, ns=5_000)


def optimizer():
    scratch = gpu.allocate(50_000)
    gpu.launch("sgd", grid=(33, 1, 1), stream=compute, ns=80_000)
    gpu.memcpy(2, 4, compute, ns=4_000)
    gpu.synchronize(compute)
    gpu.free(scratch)


def train(steps):
    for number in range(steps):
        strobe.step()
        gpu.wait(compute, load(number))
        forward()
        backward()
        optimizer()


train(int(os.environ.get("GPU_STEPS", "24")))
gpu.free(weights)
gpu.free_host(host)
time.sleep(0.3)
