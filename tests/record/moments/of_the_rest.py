"""Programs with other threads and processes, with hooks of their own, or that end: what they call is in moment.py."""

from __future__ import annotations

from tests.record.moments.moment import Moment

OF_THE_REST = {
    # Other threads, tasks and processes.
    "threads": Moment(
        """\
import threading
def run():
    while stay(): tick(); time.sleep(0.001)
all = [threading.Thread(target=run, name=f'worker {n}') for n in range(20)]
for t in all: t.start()
moment()
for t in all: t.join()
print(threading.active_count())
""",
    ),
    "threads that begin": Moment(
        """\
import threading
ready()
while stay():
    t = threading.Thread(target=tick); t.start(); t.join()
""",
    ),
    "daemon threads": Moment(
        """\
import threading
def run():
    while True: tick(); time.sleep(0.001)
for _ in range(4): threading.Thread(target=run, daemon=True).start()
moment()
print('over')
""",
    ),
    "threads of C": Moment(
        """\
import ctypes
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def stays(_):
    while stay(): tick(); time.sleep(0.001)
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def ends(_): tick()
def begin(function):
    thread = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, function, None) == 0
    return thread
def join(thread): assert libc.pthread_join(thread, None) == 0
all = [begin(stays) for _ in range(4)]
idle = begin(ctypes.cast(libc.pause, ctypes.c_void_p))
ready()
while stay(): join(begin(ends))
for thread in all: join(thread)
print('joined')
""",
    ),
    "MPI": Moment(
        """\
import ctypes, threading
mpi = os.path.exists(os.environ['MOMENT_MPI']) and ctypes.CDLL(os.environ['MOMENT_MPI'])
WORLD, SELF, DOUBLE, SUM = 0x44000000, 0x44000001, 0x4c00080b, 0x58000003  # of MPICH
def call(name, *words): assert getattr(mpi, name)(*words) == 0, name
def talk(tag):
    out, back, both = ctypes.c_double(tag), ctypes.c_double(), (ctypes.c_int * 2)()
    call('MPI_Irecv', ctypes.byref(back), 1, DOUBLE, 0, tag, WORLD, ctypes.byref(both, 0))
    call('MPI_Isend', ctypes.byref(out), 1, DOUBLE, 0, tag, WORLD, ctypes.byref(both, 4))
    call('MPI_Waitall', 2, both, ctypes.c_void_p(1))
    assert back.value == tag
def run(tag):
    while stay():
        tick()
        if mpi: talk(tag)
if mpi: call('MPI_Init_thread', None, None, 3, ctypes.byref(ctypes.c_int()))
threads = [threading.Thread(target=run, args=(tag,)) for tag in (1, 2)]
for each in threads: each.start()
ready()
total, one = ctypes.c_double(1), ctypes.c_double(1)
while stay():
    tick()
    if mpi: call('MPI_Allreduce', ctypes.byref(one), ctypes.byref(total), 1, DOUBLE, SUM, SELF)
for each in threads: each.join()
if mpi: call('MPI_Finalize')
print(total.value)
""",
    ),
    "reads and writes": Moment(
        """\
import mmap, threading
def write(name):
    with open(name, 'wb', buffering=0) as file:
        for n in range(20): file.write(b'%d' % n * 4096); tick()
        os.fsync(file.fileno())
    os.rename(name, name + '.whole')
def read(name):
    with open(name + '.whole', 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        return len(file.read()) == len(mapped) == len(os.pread(file.fileno(), 1 << 20, 0))
def run(name):
    while stay(): write(name); assert read(name)
threads = [threading.Thread(target=run, args=(f'file{n}',)) for n in range(3)]
for each in threads: each.start()
ready()
run('own')
for each in threads: each.join()
reader, writer = os.pipe()
os.write(writer, b'through a pipe')
print(os.read(reader, 99), sorted(name for name in os.listdir() if name.endswith('.whole')))
""",
    ),
    "thread pool": Moment(
        """\
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    ready()
    while stay(): list(pool.map(lambda _: tick(), range(20)))
print('done')
""",
    ),
    "asyncio": Moment(
        """\
import asyncio
async def main():
    ready()
    while stay(): tick(); await asyncio.sleep(0.001)
    return 7
print(asyncio.run(main()))
""",
    ),
    "tasks": Moment(
        """\
import asyncio
async def one(n):
    while stay(): tick(); await asyncio.sleep(0.002)
    return n
async def main():
    ready()
    return await asyncio.gather(*map(one, range(10)))
print(asyncio.run(main()))
""",
    ),
    "forks": Moment(
        """\
ready()
while stay():
    tick()
    child = os.fork()
    if not child: tick(); os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
""",
    ),
    "child that lives on": Moment(
        """\
ready()
children = []
while stay():
    tick()
    if len(children) < 3:
        child = os.fork()
        if not child:
            while stay(): tick(); time.sleep(0.002)
            os._exit(0)
        children.append(child)
    time.sleep(0.002)
print([os.waitpid(c, 0)[1] for c in children] and 'all')
""",
    ),
    "subprocesses": Moment(
        """\
import subprocess
ready()
while stay():
    tick()
    assert subprocess.run(['echo', 'a'], capture_output=True).stdout == b'a\\n'
""",
    ),
    "Python as a subprocess": Moment(
        """\
import subprocess
ready()
while stay():
    tick()
    subprocess.run([sys.executable, '-S', '-c', 'pass'], check=True)
""",
    ),
    "pool by fork": Moment(
        """\
import multiprocessing as m
def f(n): return n * n
if __name__ == '__main__':
    with m.get_context('fork').Pool(2) as pool:
        ready()
        while stay(): tick(); found = pool.map(f, range(5))
    print(found)
""",
    ),
    "pool that begins": Moment(
        """\
import multiprocessing as m
def f(n): return tick()
if __name__ == '__main__':
    ready()
    while stay():
        tick()
        with m.get_context('fork').Pool(2) as pool: pool.map(f, range(3))
""",
        ticks=False,
        kills=True,
    ),
    # What the program has for itself.
    "signal handler": Moment(
        """\
import signal
signal.signal(signal.SIGUSR1, lambda n, f: moment())
os.kill(os.getpid(), signal.SIGUSR1)
print('back')
""",
    ),
    "signals": Moment(
        """\
import signal
seen = [0]
def handle(n, f): seen[0] += 1; tick()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
moment()
signal.setitimer(signal.ITIMER_REAL, 0)
print(seen[0] > 5)
""",
    ),
    "trace function": Moment(
        """\
def see(frame, event, arg):
    if 'strobe/' in frame.f_code.co_filename: print('seen', frame)
    return see
sys.settrace(see)
moment()
print(sys.gettrace() is see)
""",
    ),
    "profile function": Moment(
        """\
def see(frame, event, arg):
    if 'strobe/' in frame.f_code.co_filename: print('seen', frame)
sys.setprofile(see)
moment()
print(sys.getprofile() is see)
""",
    ),
    "monitoring": Moment(
        """\
m = sys.monitoring
m.use_tool_id(2, 'own')
count = [0]
def begin(code, at):
    count[0] += 1
    if 'strobe/' in code.co_filename: print('seen', code)
m.register_callback(2, m.events.PY_START, begin)
m.set_events(2, m.events.PY_START)
moment()
print(count[0] > 5, m.get_tool(2), m.get_tool(3), m.get_tool(4))
""",
    ),
    "cProfile": Moment(
        """\
import cProfile, pstats
p = cProfile.Profile()
p.enable()
moment()
p.disable()
print(any(k[2] == 'tick' for k in pstats.Stats(p).stats))
""",
    ),
    "remote_exec": Moment(
        """\
import pathlib
pathlib.Path('r.py').write_text('import __main__; __main__.hits += 1')
hits = 0
ready()
while stay():
    tick(); sys.remote_exec(os.getpid(), 'r.py'); time.sleep(0.01)
time.sleep(0.01)
print(hits > 3)
""",
    ),
    "tracemalloc": Moment(
        """\
import tracemalloc
tracemalloc.start()
moment()
print(tracemalloc.is_tracing())
""",
    ),
    "hook for audits": Moment(
        """\
sys.addaudithook(lambda name, args: name == 'os.system' and print(name))
moment()
os.system('true')
""",
    ),
    "output": Moment(
        """\
ready()
n = 0
while stay(): tick(); sys.stdout.write('x' * 1000 + '\\n'); n += 1
sys.stdout.write('\\n')
""",
    ),
    "input": Moment(
        """\
import threading
got = []
t = threading.Thread(target=lambda: got.append(sys.stdin.readline()))
t.start()
moment()
t.join()
print(got)
""",
    ),
    "files": Moment(
        """\
before = set(os.listdir('/proc/self/fd'))
threads = len(os.listdir('/proc/self/task'))
moment()
time.sleep(0.05)
print(set(os.listdir('/proc/self/fd')) == before, len(os.listdir('/proc/self/task')) == threads)
""",
    ),
    "what is left": Moment(
        """\
before = set(sys.modules), dict(os.environ), list(sys.path), list(sys.meta_path)
moment()
time.sleep(0.05)
now = set(sys.modules), dict(os.environ), list(sys.path), list(sys.meta_path)
print([n for n in now[0] - before[0] if 'strobe' in n and n[0] != '_'], now[1:] == before[1:], os._exit.__module__)
""",
    ),
    # Ends within the window.
    "end": Moment(
        """\
moment()
print('end')
""",
        ends=True,
    ),
    "exit": Moment(
        """\
moment()
sys.exit(3)
""",
        ends=True,
        code=3,
    ),
    "os._exit": Moment(
        """\
moment()
print('out', flush=True)
os._exit(4)
""",
        ends=True,
        code=4,
    ),
    "uncaught": Moment(
        """\
moment()
raise SystemExit('why')
""",
        ends=True,
        code=1,
    ),
    "killed": Moment(
        """\
moment()
os.kill(os.getpid(), 9)
""",
        ends=True,
        code=-9,
    ),
    "terminated": Moment(
        """\
moment()
os.kill(os.getpid(), 15); time.sleep(5)
""",
        ends=True,
        code=-15,
    ),
    "aborted": Moment(
        """\
moment()
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.abort()
""",
        ends=True,
        code=-6,
    ),
    "becomes another": Moment(
        """\
moment()
os.execv('/bin/echo', ['echo', 'another'])
""",
        ends=True,
    ),
}
