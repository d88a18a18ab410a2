"""Counts its own events: of each command, how many there were, their time in ns, and the bytes that it asked for."""

import json
import sys

import numpy as np
import pyopencl as cl

import strobe

SOURCE = """
__kernel void scale(__global float *a, float by) { a[get_global_id(0)] *= by; }
__kernel void add(__global float *a, __global const float *b) { a[get_global_id(0)] += b[get_global_id(0)]; }
"""
SIZE = 1 << 14

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
program = cl.Program(context, SOURCE).build()
scale, add = cl.Kernel(program, "scale"), cl.Kernel(program, "add")
host, half = np.ones(SIZE, np.float32), np.empty(SIZE // 2, np.float32)
a, b = (cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes) for _ in range(2))
own: dict[str, list[int]] = {}


def done(name: str, event: cl.Event, size_bytes: int = 0) -> None:
    event.wait()
    sums = own.setdefault(name, [0, 0, 0])
    for i, more in enumerate((1, event.profile.end - event.profile.start, size_bytes)):
        sums[i] += more


for _ in range(int(sys.argv[1])):
    strobe.step()
    done("Memcpy HtoD", cl.enqueue_copy(queue, a, host, is_blocking=False), host.nbytes)
    done("Memset", cl.enqueue_fill_buffer(queue, b, np.float32(2), 0, host.nbytes), host.nbytes)
    done("scale", scale(queue, (SIZE,), (64,), a, np.float32(0.5)))
    done("add", add(queue, (SIZE,), None, a, b))
    done("Memcpy DtoD", cl.enqueue_copy(queue, b, a, byte_count=100), 100)
    done("Memcpy DtoH", cl.enqueue_copy(queue, half, a), half.nbytes)
queue.finish()
print(json.dumps(own))
