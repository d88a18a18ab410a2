"""CPython's own tests of threads, generators, coroutines, processes and tracing, plain and under `strobe run`.

./dev bench cpython_suite [--pythons 3.11 3.13 3.15] [--modules test_threading ...] [--options=--trace=+c_calls]

Every test runs in both ways, in a fresh process per module; everything that the tests and the standard library call is
recorded. Each test's own result is compared. A test that also fails without strobe is not an exception. A test
that differs is run twice more in both ways, so that a busy machine is not taken for a fault.
Debian's Pythons come without these tests: `./dev pythons --tests` gets those of 3.14 and 3.15.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ROOT, table

MODULES = (
    "test_threading",
    "test_thread",
    "test_generators",
    "test_coroutines",
    "test_asyncgen",
    "test_contextlib",
    "test_subprocess",
    "test_sys_settrace",
    "test_sys_setprofile",
    "test_monitoring",
    "test_bdb",
    "test_pdb",
    "test_cprofile",
    "test_fork1",
    "test_asyncio",
    "test_multiprocessing_fork",
    "test_multiprocessing_spawn",
    "test_multiprocessing_forkserver",
)
LIMIT_S = 1800
AGAIN = 2

# Writes one line per test, as it ends: a module that crashes in the middle leaves what it had.
RUNNER = """
import sys, unittest

class Result(unittest.TextTestResult):
    def note(self, test, verdict):
        with open(sys.argv[2], "a") as out:
            out.write(f"{verdict}\\t{test.id()}\\n")
    def addSuccess(self, test):
        super().addSuccess(test); self.note(test, "ok")
    def addError(self, test, error):
        super().addError(test, error); self.note(test, "error")
    def addFailure(self, test, error):
        super().addFailure(test, error); self.note(test, "failed")
    def addSkip(self, test, reason):
        super().addSkip(test, reason); self.note(test, "skipped")
    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error); self.note(test, "ok")
    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test); self.note(test, "unexpected")

if __name__ == "__main__":
    import test.support
    test.support.verbose = 0
    loader = unittest.defaultTestLoader
    names = sys.argv[3:]
    suite = loader.loadTestsFromNames(names) if names else loader.loadTestsFromName("test." + sys.argv[1])
    unittest.TextTestRunner(resultclass=Result, verbosity=0).run(suite)
"""


def verdicts(python: Path, module: str, options: list[str] | None, names: list[str], talk: list[str]) -> dict[str, str]:
    """The verdict of every test of a module; `options` of `strobe run`, or None for the plain run."""
    with tempfile.TemporaryDirectory(prefix="suite-", dir=ROOT / "build") as place:
        script, out = Path(place, "runner.py"), Path(place, "verdicts")
        script.write_text(RUNNER)
        out.touch()
        words = [str(script), module, str(out), *names]
        if options is None:
            command = [str(python), *words]
        else:
            strobe = str(python.with_name("strobe"))
            command = [strobe, "run", "--quiet", "-o", f"{place}/out.strobe", *options, *words]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "STROBE", "VIRTUAL"))}
        try:
            done = subprocess.run(
                command,
                cwd=place,
                env=clean,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
            )
            how = "" if done.returncode == 0 else f"ended with {done.returncode}"
            talk.append(done.stderr)
        except subprocess.TimeoutExpired:
            how = f"took more than {LIMIT_S} s"
        found = dict(reversed(line.split("\t", 1)) for line in out.read_text().splitlines())
        if how:
            found["(the process)"] = how
        return found


def differences(plain: dict[str, str], recorded: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Tests whose verdicts differ."""
    names = [name for name in {**plain, **recorded} if plain.get(name) != recorded.get(name)]
    return {name: (plain.get(name, "did not run"), recorded.get(name, "did not run")) for name in names}


def exceptions(python: Path, module: str, options: list[str]) -> tuple[int, int, dict[str, tuple[str, str]], str]:
    """Tests of a module, failures without strobe, and the tests that differ however often they run."""
    talk: list[str] = []
    plain = verdicts(python, module, None, [], talk)
    recorded = verdicts(python, module, options, [], talk)
    differ = differences(plain, recorded)
    for _ in range(AGAIN):
        names = [name for name in differ if not name.startswith(("(", "setUp", "tearDown"))]
        if not names:
            break
        again = differences(verdicts(python, module, None, names, talk), verdicts(python, module, options, names, talk))
        differ = {name: again[name] for name in names if name in again}
    return len(plain), sum(verdict not in ("ok", "skipped") for verdict in plain.values()), differ, talk[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="+", default=[Path(sys.executable).parents[1].name])
    parser.add_argument("--modules", nargs="+", default=list(MODULES))
    parser.add_argument("--options", default="", help="more options of `strobe run`")
    parser.add_argument("--talk", action="store_true", help="also what the last recorded run wrote to stderr")
    chosen = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    rows, all_differ = [], []
    for version in chosen.pythons:
        python = ROOT / f".venv/{version}/bin/python"
        where = (
            "import json, os, test; print(json.dumps([os.path.dirname(os.__file__), os.path.dirname(test.__file__)]))"
        )
        library, tests = json.loads(subprocess.run([str(python), "-c", where], capture_output=True, check=True).stdout)
        options = ["--include", library, "--throttle", "off", *chosen.options.split()]
        for module in chosen.modules:
            if not list(Path(tests).glob(f"{module}*")):
                continue
            count, failures, differ, talk = exceptions(python, module, options)
            rows.append(
                {"Python": version, "module": module, "tests": count, "fail plainly": failures, "differ": len(differ)}
            )
            all_differ += [(version, name, *how) for name, how in differ.items()]
            print(f"{version} {module}: {count} tests, {failures} fail plainly, {len(differ)} differ", file=sys.stderr)
            if differ and chosen.talk:
                print(talk[-6000:], file=sys.stderr)
    print("\n## CPython's own tests under `strobe run`\n")
    print(table(rows) if rows else "None of these Pythons has any of these modules.")
    for version, name, plain, recorded in all_differ:
        print(f"\n- {version} {name}: {plain} without, {recorded} with strobe")


if __name__ == "__main__":
    main()
