"""Four ranks of a data-parallel training, eight marks of 64 ms each. Kernels of rank 2 take 1.5 times as long.

NCCL all-reduces of two buckets begin when a rank is there and end 1.5 ms after rank 2 is, so the others wait for it in
these kernels. Truth: straggler 2. If it were as fast as the others, a step took 44 ms: 20 of 64 ms by construction.
"""

from kineto import event, launch, save
from truth import problem, truth

STEP, COLLECTIVE, OPTIMIZER = 64_000, 1_500, 2_000
FORWARD, BACKWARD, PIECES = 14_000, 26_000, 10
SLOW = 2


def all_reduce(events, number, at, begin, end, elements):
    ids = {"External id": number}
    args = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float"}
    args |= {"Group size": 4, "Process Group Name": "0", "Process Group Description": "default_pg"}
    events.append(event("cpu_op", "c10d::allreduce_", at, 90, tid=2, **ids))
    events.append(event("cpu_op", "record_param_comms", at + 10, 70, tid=2, **ids, **args))
    events.append(event("user_annotation", "nccl:all_reduce", at + 15, 60, tid=2))
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    launch(events, number, at + 40, kernel, begin, end - begin, 20)
    events[-4]["tid"] = events[-2]["tid"] = 2
    events[-3]["args"] |= args


def one_step(events, number, base, factor):
    """Events of a step from `base`; all ranks begin together, as the last all-reduce let go of them together."""
    events.append(event("user_annotation", f"ProfilerStep#{base // STEP}", base, STEP))
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    events.append(event("user_annotation", name, base + 10, 60))
    start, device = base + 150, base + 150
    events.append(event("user_annotation", "DistributedDataParallel.forward", base + 90, PIECES * 60 + 40))
    for part, total, tid, op, kernel in (
        ("forward", FORWARD, 1, "aten::addmm", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"),
        ("backward", BACKWARD, 2, "aten::mm", "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n"),
    ):
        for n in range(PIECES):
            number += 1
            at = start - 50 + 60 * n + (900 if part == "backward" else 0)
            length = int(total * factor) // PIECES
            events.append(event("cpu_op", op, at, 45, tid=tid, **{"External id": number}))
            launch(events, number, at + 20, kernel, device, length)
            events[-4]["tid"] = events[-2]["tid"] = tid
            device += length
    ready = [start + int((FORWARD + BACKWARD / 2) * factor), start + int((FORWARD + BACKWARD) * factor)]
    late = [start + int((FORWARD + BACKWARD / 2) * 1.5), start + int((FORWARD + BACKWARD) * 1.5)]
    free = 0
    for bucket in (0, 1):
        number += 1
        end = late[bucket] + COLLECTIVE
        all_reduce(events, number, start + 1_600 + 120 * bucket, max(ready[bucket], free), end, 25_000_000)
        free = end
    number += 1
    at = start + 2_200
    events.append(event("user_annotation", "Optimizer.step#AdamW.step", at, 300))
    events.append(event("cpu_op", "aten::_fused_adamw_", at + 40, 200, **{"External id": number}))
    kernel = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>"
    launch(events, number, at + 100, kernel, free, OPTIMIZER)
    wait = start + 2_600
    events.append(event("cuda_runtime", "cudaStreamSynchronize", wait, free + OPTIMIZER + 20 - wait))
    return number


def write(folder):
    truths = []
    for rank in range(4):
        events, number = [], 0
        for s in range(8):
            number = one_step(events, number, s * STEP, 1.5 if rank == SLOW else 1.0)
        save(folder, events, rank)
        planted = problem("kernels of rank 2 are slower than those of others", "trace:rank 2", "straggler", gain=0.3125)
        steps = [(s * STEP * 1000, (s + 1) * STEP * 1000, "train") for s in range(8)]
        truths.append(
            truth(steps, unit="profiler step", limiting="straggler", limiting_rank=SLOW, problem=planted, rank=rank)
        )
    return truths
