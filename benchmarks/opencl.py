"""What a recorded command of OpenCL costs, on pocl: kernels that do nothing.

./dev bench opencl

The least of 9 passes of 5 000 kernels, in microseconds per kernel. `thread`: CPU time of the thread that launches them;
`process`: with the threads of pocl and of the recorder.
"""

import sys

from measure import STROBE, checked, folder, table

PROGRAM = """
import sys, time
import pyopencl as cl
context = cl.create_some_context(interactive=False)
profiling = cl.command_queue_properties.PROFILING_ENABLE if "profiling" in sys.argv else 0
queue = cl.CommandQueue(context, properties=profiling)
nothing = cl.Kernel(cl.Program(context, "__kernel void nothing() {}").build(), "nothing")
best = {}
for _ in range(9):
    before = time.thread_time_ns(), time.process_time_ns()
    for _ in range(5000):
        cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))
    queue.finish()
    for name, begin, end in zip(("thread", "process"), before, (time.thread_time_ns(), time.process_time_ns())):
        best[name] = min(best.get(name, 1e9), (end - begin) / 5e6)
print(best["thread"], best["process"])
"""


def main() -> None:
    """Print the table."""
    rows = []
    with folder() as place:
        (place / "program.py").write_text(PROGRAM, encoding="utf-8")
        for name, command in (
            ("plain", [sys.executable, "program.py"]),
            ("queue with profiling", [sys.executable, "program.py", "profiling"]),
            ("strobe", [STROBE, "run", "--quiet", "--trace", "opencl", "-o", "t.strobe", "program.py"]),
        ):
            thread, process = map(float, checked(command, place).stdout.split())
            rows.append({"": name, "thread": f"{thread:.2f}", "process": f"{process:.2f}"})
    print(table(rows))


main()
