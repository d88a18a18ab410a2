"""Programs whose main thread is in the middle of something: tests/record/moments/moment.py has what they call."""

from __future__ import annotations

from tests.record.moments.moment import Moment

IN_MAIN_THREAD = {
    # What the main thread does.
    "loop": Moment(
        """\
moment()
""",
    ),
    "busy loop": Moment(
        """\
ready()
while stay():
    for _ in range(100): tick()
""",
    ),
    "sleep": Moment(
        """\
moment(0.03)
""",
    ),
    "select": Moment(
        """\
import select, socket
a, b = socket.socketpair()
ready()
while stay():
    tick(); select.select([a], [], [], 0.02)
""",
    ),
    "socket": Moment(
        """\
import socket
a, b = socket.socketpair()
a.settimeout(0.02)
ready()
while stay():
    b.send(b'x'); a.recv(1); tick()
""",
    ),
    "lock": Moment(
        """\
import threading
lock = threading.Lock(); lock.acquire()
ready()
while stay():
    tick(); lock.acquire(timeout=0.02)
""",
    ),
    "condition": Moment(
        """\
import threading
c = threading.Condition()
ready()
with c:
    while stay(): tick(); c.wait(0.01)
""",
    ),
    "native loops": Moment(
        """\
ready()
while stay():
    tick(); sorted(range(2000), key=lambda n: -n)
""",
    ),
    "native without the GIL": Moment(
        """\
import hashlib, zlib
ready()
while stay():
    tick(); hashlib.sha256(b'x' * 3000000); zlib.crc32(b'y' * 99999)
""",
    ),
    "regular expressions": Moment(
        """\
import re
ready()
while stay():
    tick(); re.sub('(a+)b', 'c', 'aaab' * 999)
""",
    ),
    "array program": Moment(
        """\
try:
    import numpy as np
except ImportError:
    np = None
ready()
while stay():
    tick(); np is None or float(np.ones((300, 300)).dot(np.ones((300, 300))).sum())
""",
    ),
    # Where in the program it is.
    "generators": Moment(
        """\
def count(n):
    for i in range(n): yield i + tick()
def twice(g):
    for i in g: yield i; yield i
ready()
total = 0
while stay():
    total = sum(twice(twice(count(50))))
print(total)
""",
    ),
    "suspended generator": Moment(
        """\
def g():
    try:
        while True: tick(); yield 1
    finally: print('closed')
one = g(); next(one)
ready()
while stay(): next(one); time.sleep(0.001)
one.close()
""",
    ),
    "recursion": Moment(
        """\
def down(n):
    if n: return down(n - 1)
    moment()
    return 'deep'
print(down(900))
""",
    ),
    "except": Moment(
        """\
def fails(): raise KeyError('a')
try:
    fails()
except KeyError as error:
    moment()
    print(repr(error), sys.exception() is error)
""",
    ),
    "finally": Moment(
        """\
def f():
    try: return 'kept'
    finally: moment()
print(f())
""",
    ),
    "finally of an exception": Moment(
        """\
try:
    try: raise ValueError('v')
    finally: moment()
except ValueError as e: print(e)
""",
    ),
    "with": Moment(
        """\
import contextlib
@contextlib.contextmanager
def c():
    try: yield
    finally: moment(); print('left')
with c(): pass
""",
    ),
    "exceptions": Moment(
        """\
def fails(): tick(); raise KeyError(1)
def tries():
    try: fails()
    except KeyError: return 1
ready()
while stay(): tries()
""",
    ),
    "exec": Moment(
        """\
ready()
while stay(): exec(compile('def f(): return tick()\\nf()', '<made>', 'exec'))
""",
    ),
    "import": Moment(
        """\
import pathlib
pathlib.Path('slow_module.py').write_text('import __main__\\n__main__.moment()\\nx = 5')
sys.path.insert(0, os.getcwd())
import slow_module
print(slow_module.x)
""",
        ticks=False,
    ),
    "many imports": Moment(
        """\
import importlib
ready()
while stay():
    for n in ('colorsys', 'stringprep', 'this_is_missing'):
        sys.modules.pop(n, None)
        try: importlib.import_module(n)
        except ImportError: tick()
""",
    ),
    "class body": Moment(
        """\
class A:
    moment()
    x = 3
print(A.x)
""",
    ),
    "callback of C": Moment(
        """\
import ctypes
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    tick(); return a[0] - b[0]
back = kind(compare)
ready()
while stay():
    array = (ctypes.c_int * 50)(*range(50, 0, -1))
    ctypes.CDLL(None).qsort(array, 50, 4, back)
print(list(array)[:3] if array else None)
""",
    ),
    "finalizer": Moment(
        """\
class A:
    def __del__(self): moment()
a = A()
del a
print('deleted')
""",
    ),
    "garbage collection": Moment(
        """\
import gc
class A: pass
def cycle():
    a, b = A(), A(); a.b, b.a = b, a
ready()
while stay():
    for _ in range(200): cycle()
    tick(); gc.collect()
""",
    ),
    "callback of the collector": Moment(
        """\
import gc
in_it = []
def call(phase, info):
    if not in_it: in_it.append(1); moment()
gc.callbacks.append(call)
gc.collect()
print('collected')
""",
    ),
    "weak reference": Moment(
        """\
import weakref
class A: pass
a = A()
r = weakref.ref(a, lambda _: moment())
del a
print(r())
""",
    ),
    "exit handler": Moment(
        """\
import atexit
atexit.register(print, 'last')
atexit.register(moment)
""",
        refused="about to end",
    ),
    "exit of a thread": Moment(
        """\
import threading
def wait():
    while stay(): tick(); time.sleep(0.001)
threading.Thread(target=wait).start()
moment()
print('main ends')
""",
    ),
}
