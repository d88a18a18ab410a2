"""However a program ends, strobe ends the same way, and the trace opens with everything that was recorded."""

import os
import signal
import subprocess
import sys
import time

import pytest

import strobe
from tests.record.workshop import TIMEOUT_S, Workshop, quality_of, spans_of

BUSY = """
import os, sys, time
def work(n):
    return n + 1
def step():
    for n in range(1000):
        work(n)
def busy():
    while True:
        work(1)
for _ in range(200):
    step()
"""
ENDINGS = {
    "normal": "pass",
    "exit code": "sys.exit(3)",
    "exit code beyond a byte": "sys.exit(259)",
    "exit with a message": "sys.exit('so long')",
    "exit without a value": "sys.exit()",
    "uncaught exception": "raise ValueError('wrong')",
    "chained exceptions": "\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('after') from e",
    "exception in a thread": "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "os._exit": "os._exit(9)",
    "abort": "os.abort()",
    "segfault": "import ctypes; ctypes.string_at(1)",
    "killed": "os.kill(os.getpid(), 9)",
    "terminated": "os.kill(os.getpid(), 15)",
    "hung up": "os.kill(os.getpid(), 1)",
    "user signal": "os.kill(os.getpid(), 10)",
    "atexit that prints": "import atexit; atexit.register(print, 'last words')",
    "atexit that fails": "import atexit; atexit.register(int, 'no number')",
    "exec into another program": "os.execv('/bin/echo', ['echo', 'replaced'])",
    "daemon thread still busy": "import threading; threading.Thread(target=busy, daemon=True).start()",
    "closed streams": "sys.stdout.close(); sys.stderr.close()",
}
ABRUPT = {"os._exit", "abort", "segfault", "killed", "terminated", "hung up", "user signal"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_as_without_strobe_and_its_trace_opens(workshop: Workshop, ending: str) -> None:
    workshop.write("program.py", BUSY + "print('before the end', flush=True)\n" + ENDINGS[ending])
    recorded = workshop.recorded("program.py")
    assert recorded.visible == workshop.plain("program.py").visible
    assert spans_of(recorded.trace, "step") == 200, "calls made before the end are missing"


@pytest.mark.parametrize("ending", sorted(ABRUPT))
def test_the_quality_table_says_how_a_program_was_cut_off(workshop: Workshop, ending: str) -> None:
    workshop.write("program.py", BUSY + ENDINGS[ending])
    recorded = workshop.recorded("program.py")
    states = [row["end_state"] for row in strobe.open(recorded.trace).processes.to_pylist()]
    assert states == ["exited" if ending == "os._exit" else "lost"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_sent_to_strobe_reaches_the_program(workshop: Workshop, number: signal.Signals) -> None:
    workshop.write("program.py", BUSY + "print('ready', flush=True)\ntime.sleep(60)")
    endings = []
    for start in (workshop.start, workshop.start_plain):
        process = start("program.py")
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
        # Which of its last two lines the program is in, when the signal comes, is chance: its last word counts.
        endings.append((out, err.splitlines()[-1:], process.returncode))
    assert endings[0] == endings[1]
    assert spans_of(workshop.trace, "step") == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
def test_a_programs_own_handler_decides(workshop: Workshop, number: signal.Signals) -> None:
    workshop.write(
        "program.py",
        f"""
        import signal, sys, time
        def stop(number, frame):
            print("cleaning up", number, flush=True)
            sys.exit(5)
        signal.signal({int(number)}, stop)
        print("ready", flush=True)
        time.sleep(60)
        """,
    )
    process = workshop.start("program.py")
    process.send_signal(number)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (out, process.returncode) == (f"cleaning up {int(number)}\n", 5)


CTRL_C, CTRL_Z = b"\x03", b"\x1a"


def test_ctrl_c_reaches_strobe_and_program_and_the_program_decides(workshop: Workshop) -> None:
    """A terminal signals the whole process group: strobe must wait for what the program makes of it."""
    workshop.write(
        "program.py",
        BUSY
        + """
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("saving", flush=True)
    time.sleep(0.3)
    print("saved", flush=True)
""",
    )
    terminal = workshop.start_in_terminal("program.py")
    terminal.type(CTRL_C)
    assert terminal.finish() == 0
    assert terminal.text.split() == ["ready", "^Csaving", "saved"]
    assert spans_of(workshop.trace, "step") == 200


def test_ctrl_c_kills_strobe_by_the_signal_when_it_kills_the_program(workshop: Workshop) -> None:
    """A shell stops its loop only when the program died by SIGINT, not when it exited with 130."""
    workshop.write("program.py", "import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.1)")
    terminal = workshop.start_in_terminal("program.py")
    terminal.type(CTRL_C)
    assert terminal.finish() == -signal.SIGINT
    assert terminal.text.count("KeyboardInterrupt") == 1, terminal.text


def test_impatient_ctrl_c_does_not_cost_the_trace(workshop: Workshop) -> None:
    workshop.write("program.py", BUSY + "print('ready', flush=True)\ntime.sleep(60)")
    terminal = workshop.start_in_terminal("program.py")
    for _ in range(20):
        terminal.type(CTRL_C)
        time.sleep(0.01)
    assert terminal.finish() == -signal.SIGINT
    assert "strobe/" not in terminal.text, "a traceback of strobe's own"
    assert spans_of(workshop.trace, "step") == 200


def test_a_stopped_program_goes_on(workshop: Workshop) -> None:
    workshop.write("program.py", "print('ready', flush=True)\nimport time\ntime.sleep(0.5)\nprint('end')")
    process = workshop.start("program.py")
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGCONT)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (out, process.returncode) == ("end\n", 0)


@pytest.mark.parametrize("delay_s", [0.05, 0.31, 0.77])
def test_kill_nine_loses_nothing_that_was_recorded(workshop: Workshop, delay_s: float) -> None:
    """The program counts its own calls in a file that survives it; the trace must hold every one but the last few."""
    workshop.write(
        "program.py",
        """
        import mmap
        with open("count.bin", "wb") as file:
            file.write(bytes(8))
        file = open("count.bin", "r+b")
        # struct.pack_into clears the bytes before it writes them: a kill in between would leave a zero.
        count = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        def tick(n):
            count[0] = n
        print("ready", flush=True)
        n = 0
        while True:
            n += 1
            tick(n)
        """,
    )
    process = workshop.start("program.py")
    time.sleep(delay_s)
    pid = int(subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True).split()[0])
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    counted = int.from_bytes((workshop.folder / "count.bin").read_bytes(), sys.byteorder)
    recorded = spans_of(workshop.trace, "tick")
    lost = quality_of(workshop.trace, "records_lost")
    assert counted - 1 <= recorded + lost <= counted + 1


def test_strobe_itself_killed_leaves_a_trace_that_opens(workshop: Workshop) -> None:
    workshop.write("program.py", BUSY + "print('ready', flush=True)\ntime.sleep(0.5)")
    process = workshop.start("program.py")
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    assert spans_of(workshop.trace, "step") == 200
