"""A serving engine's `execute_context` annotations: one prefill of 12 ms, then 20 decodes of 4 ms. Healthy, GPU-bound."""

from kineto import event, launch, save
from truth import truth


def write(folder):
    events, steps, at = [], [], 0
    for s in range(21):
        length, context, generation = (12_000, 1, 0) if s == 0 else (4_000, 0, 1)
        size = 800 if s == 0 else 0
        name = f"execute_context_{context}({size})_generation_{generation}({generation})"
        events.append(event("user_annotation", name, at, length))
        events.append(event("cpu_op", "aten::mm", at + 10, 40, **{"External id": s + 1}))
        launch(events, s + 1, at + 20, "flash_fwd_kernel", at + 60, length - 100)
        steps.append((at * 1000, (at + length) * 1000, "prefill" if s == 0 else "decode"))
        at += length
    save(folder, events)
    return truth(steps, unit="engine step", limiting="gpu")
