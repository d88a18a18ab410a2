"""Nothing that a program can see of itself changes under `strobe run`."""

import json
import sys
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

# Each probe prints something that a recorder could disturb. The same words must come out with and without strobe.
PROBES = {
    "argv": "print(sys.argv, sys.orig_argv[1:])",
    "main": "print(__name__, __file__, __package__, __spec__ and __spec__.name, dir())",
    "main_module": "m = sys.modules['__main__']; print(m.__dict__ is globals(), type(m.__loader__).__name__)",
    "path": "print(sys.path)",
    "folder": "print(os.getcwd(), os.umask(0))",
    "streams": "print(sys.stdout.encoding, sys.stderr.errors, sys.stdin.isatty(), sys.stdout.line_buffering)",
    "flags": "print(sys.flags, sys.warnoptions, sys._xoptions)",
    "warning_filters": "import warnings; print(len(warnings.filters), warnings.filters[:3])",
    "hooks": "print(sys.gettrace(), sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)",
    "profile_hook": "import threading; print(sys.getprofile(), threading.getprofile(), threading.gettrace())",
    "threads": "import threading; print([t.name for t in threading.enumerate()], threading.active_count())",
    "thread_names": """
import threading
class Odd(threading.Thread):
    name = property(lambda self: 1 // 0)
for kind in (threading.Thread, Odd):
    thread = kind(target=print, args=('in it',), name='odd \\udcff name')
    thread.start()
    thread.join()""",
    "import_machinery": """
finders = [finder if isinstance(finder, type) else type(finder) for finder in sys.meta_path]
print([f.__name__ for f in finders if not f.__module__.startswith('strobe.')], len(sys.path_hooks))""",
    "signal_handlers": "import signal; print([(s, str(signal.getsignal(s))) for s in sorted(signal.valid_signals())])",
    "signal_mask": "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    "limits": "import resource as r; print([r.getrlimit(getattr(r, n)) for n in dir(r) if n.startswith('RLIMIT_')])",
    "interpreter": "import gc; print(gc.get_threshold(), gc.isenabled(), sys.getrecursionlimit())",
    "process_group": "print(os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())",
    "children": "import multiprocessing as mp; print(mp.active_children(), mp.get_start_method())",
    "faulthandler": "import faulthandler; print(faulthandler.is_enabled())",
    "float_environment": "print(1e308 * 10, 5e-324 / 2, 0.1 + 0.2, 2.0 ** -1074)",
    "hash": "print(hash('strobe'))",
    "stdin": "print(sys.stdin.read())",
    "docstring": "print(__doc__)",
    "both_streams": "print('out'); print('err', file=sys.stderr); os.write(1, b'raw out'); os.write(2, b'raw err')",
    "site": "import site; print(site.ENABLE_USER_SITE, sys.prefix, sys.base_prefix, sys.executable)",
    "usual_customisation": "print('sitecustomize' in sys.modules, 'usercustomize' in sys.modules)",
    "recursion_error": """
def deeper(n):
    try:
        return deeper(n + 1)
    except RecursionError:
        return n
print(deeper(0))""",
    "frames": """
def names():
    frame, found = sys._getframe(), []
    while frame:
        found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found
print(names())""",
    "generators": """
def numbers():
    try:
        yield 1
        yield 2
    finally:
        print('closed')
for n in numbers():
    print(n)
    break
g = numbers(); next(g)
try:
    g.throw(KeyError('x'))
except KeyError as error:
    print(error, error.__traceback__.tb_lineno)""",
    "coroutines": """
import asyncio
async def work(n):
    await asyncio.sleep(0)
    return n * n
async def main():
    return await asyncio.gather(*(work(n) for n in range(5)))
print(asyncio.run(main()))""",
}
HEADER = '"""A probe."""\nimport os, sys\n'


@pytest.mark.parametrize("probe", PROBES)
def test_a_script_sees_what_it_would_see_without_strobe(workshop: Workshop, probe: str) -> None:
    workshop.write("probe.py", HEADER + PROBES[probe])
    options = {"stdin": "some input\n", "env": {"PYTHONHASHSEED": "7"}}
    assert workshop.recorded("probe.py", "a", "-b", "--c=d e", **options).visible == (
        workshop.plain("probe.py", "a", "-b", "--c=d e", **options).visible
    )
    assert workshop.trace.is_dir(), "the probe was not recorded at all"


@pytest.mark.parametrize("probe", ["argv", "main", "main_module", "path", "frames"])
def test_a_module_sees_what_it_would_see_without_strobe(workshop: Workshop, probe: str) -> None:
    workshop.write("package/__init__.py", "")
    workshop.write("package/probe.py", HEADER + PROBES[probe])
    assert workshop.recorded("-m", "package.probe", "x", "-y").visible == (
        workshop.plain("-m", "package.probe", "x", "-y").visible
    )


@pytest.mark.parametrize("probe", ["argv", "main_module", "path", "frames"])
def test_code_on_the_command_line_sees_what_it_would_see_without_strobe(workshop: Workshop, probe: str) -> None:
    code = HEADER + PROBES[probe]
    assert workshop.recorded("-c", code, "x", "-y").visible == workshop.plain("-c", code, "x", "-y").visible


@pytest.mark.parametrize("words", [("-u", "-O"), ("-X", "utf8=0"), ("-W", "error"), ("-B", "-s"), ("-P",)])
def test_the_interpreters_own_options_are_kept(workshop: Workshop, words: tuple[str, ...]) -> None:
    workshop.write("probe.py", HEADER + "print(sys.flags, sys.warnoptions, sys.path, sys.orig_argv[1:], __debug__)")
    command = ("--", sys.executable, *words, "probe.py", "x")
    assert workshop.recorded(*command).visible == workshop.plain(*command).visible


def test_a_folder_with_a_main_module_runs(workshop: Workshop) -> None:
    workshop.write("program/__main__.py", HEADER + "import helper; print(sys.argv, sys.path[0], helper.x)")
    workshop.write("program/helper.py", "x = 3")
    assert workshop.recorded("program", "1").visible == workshop.plain("program", "1").visible


def test_names_beyond_ascii_and_spaces_are_kept(workshop: Workshop) -> None:
    workshop.write("häßlich und lang.py", HEADER + "def größe(): return os.fsencode(sys.argv[1])\nprint(größe())")
    argument = b"\xff\xfe caf\xe9".decode("utf-8", "surrogateescape")
    assert workshop.recorded("häßlich und lang.py", argument).visible == (
        workshop.plain("häßlich und lang.py", argument).visible
    )


@pytest.mark.parametrize(
    "name",
    [
        "json",
        "threading",
        "subprocess",
        "logging",
        "random",
        "struct",
        "ctypes",
        "atexit",
        "glob",
        "pathlib",
        "config",
        "session",
    ],
)
def test_a_module_beside_the_script_wins_over_one_that_the_recorder_uses(workshop: Workshop, name: str) -> None:
    workshop.write(f"{name}.py", f"mine = 'the {name} beside the script'")
    workshop.write("program.py", f"import {name}; print(getattr({name}, 'mine', 'not mine'))")
    assert workshop.recorded("program.py").visible == workshop.plain("program.py").visible


def test_the_programs_own_sitecustomize_still_runs(workshop: Workshop) -> None:
    # `strobe` is a Python program and has a sitecustomize of its own to run: this one speaks in the program only.
    workshop.write(
        "site/sitecustomize.py", "import sys; sys.orig_argv[1] == 'program.py' and sys.stdout.write('customised\\n')"
    )
    workshop.write("program.py", "import sitecustomize; print(sitecustomize.__file__)")
    env = {"PYTHONPATH": str(workshop.folder / "site")}
    plain = workshop.plain("program.py", env=env)
    assert plain.stdout.startswith("customised\n")
    assert workshop.recorded("program.py", env=env).visible == plain.visible


def test_only_the_documented_variables_are_added_to_the_environment(workshop: Workshop) -> None:
    workshop.write("program.py", "import json, os; print(json.dumps(dict(os.environ)))")
    plain, recorded = (json.loads(way("program.py").stdout) for way in (workshop.plain, workshop.recorded))
    assert {name: recorded[name] for name in plain if name != "PYTHONPATH"} == plain
    added = {name for name in recorded.keys() - plain.keys() if not name.startswith("STROBE_")}
    injected = {
        "INTEL_LIBITTNOTIFY64",
        "NVTX_INJECTION64_PATH",
        "CUDA_INJECTION64_PATH",
        "OPENCL_LAYERS",
        "OMP_TOOL_LIBRARIES",
        "ACC_PROFLIB",
        "LD_PRELOAD",
    }
    assert added <= {"PYTHONPATH", *injected}


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONWARNINGS": "error"},
        {"PYTHONDEVMODE": "1"},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONMALLOC": "debug"},
        {"PYTHONDONTWRITEBYTECODE": "1"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "LANG": "C"},
        {"PYTHONUNBUFFERED": "1"},
        {"PYTHONINSPECT": ""},
        {"HOME": "/nowhere", "TMPDIR": "/nowhere"},
    ],
    ids=lambda env: next(iter(env)),
)
def test_the_environments_switches_of_python_keep_their_meaning(workshop: Workshop, env: dict[str, str]) -> None:
    workshop.write("program.py", HEADER + "print(sys.flags, sys.warnoptions, sys.path, sys.stdout.encoding)")
    assert workshop.recorded("program.py", env=env).visible == workshop.plain("program.py", env=env).visible


def test_it_starts_without_any_environment(workshop: Workshop) -> None:
    workshop.write("program.py", "print('hello')")
    words = ["env", "-i", *workshop.command("program.py")]
    outcome = workshop.plain("--", *words)
    assert outcome.visible == ("hello\n", "", 0)


def test_the_recorder_writes_no_bytecode_and_no_file_beside_the_program(workshop: Workshop) -> None:
    workshop.write("program.py", "print('hello')")
    workshop.recorded("program.py")
    assert sorted(path.name for path in workshop.folder.iterdir()) == ["out.strobe", "program.py"]


def test_a_program_that_closes_every_descriptor_keeps_its_own_files_intact(workshop: Workshop) -> None:
    """Daemons do this. The descriptor that the recorder held may then belong to a file of the program."""
    workshop.write(
        "program.py",
        """
        import os
        def work(n):
            return n + 1
        for n in range(100_000):
            work(n)
        os.closerange(3, 4096)
        mine = [os.open(f"mine-{n}.bin", os.O_RDWR | os.O_CREAT, 0o600) for n in range(64)]
        for descriptor in mine:
            os.write(descriptor, b"mine")
        for n in range(1_000_000):
            work(n)
        print("done", flush=True)
        """,
    )
    outcome = workshop.recorded("program.py")
    assert (outcome.stdout, outcome.returncode) == ("done\n", 0)
    assert [line.partition(":")[0] for line in outcome.stderr.splitlines()] in ([], ["strobe"])
    assert {path.read_bytes() for path in workshop.folder.glob("mine-*.bin")} == {b"mine"}


def test_a_deep_recursion_that_works_without_strobe_works_with_it(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import sys
        sys.setrecursionlimit(200_000)
        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)
        print(depth(100_000))
        """,
    )
    outcome = workshop.recorded("program.py")
    assert outcome.visible == workshop.plain("program.py").visible
    trace = strobe.open(outcome.trace)
    recorded = trace.sql("select count(*) from spans where name = 'depth'").rows()[0][0]
    missed = dict(trace.sql("select what, value from quality where value > 0").rows()).get("calls_too_deep", 0)
    assert recorded + missed == 100_001  # every call is in the trace, or in the number of those that are not


def test_output_into_a_closed_pipe_ends_as_without_strobe(workshop: Workshop) -> None:
    workshop.write("program.py", "for n in range(200_000): print(n)")
    script = "set -o pipefail; {} | head -1; echo ${{PIPESTATUS[0]}}"
    plain = workshop.plain("--", "bash", "-c", script.format(f"{sys.executable} program.py"))
    recorded = workshop.plain("--", "bash", "-c", script.format(" ".join(workshop.command("program.py"))))
    assert recorded.visible == plain.visible


def test_a_program_that_changes_folder_is_recorded_where_it_was_asked_for(workshop: Workshop) -> None:
    workshop.write("program.py", "import os; os.chdir('/'); print(os.getcwd())")
    workshop.trace = Path("relative.strobe")
    assert workshop.recorded("program.py").visible == ("/\n", "", 0)
    assert (workshop.folder / "relative.strobe" / "job.json").is_file()
