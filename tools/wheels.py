"""Wheels for other machines: python tools/wheels.py [--pythons 3.11 3.13] [--target aarch64] [--native]

For each Python, into dist/: the whole of strobe, and the recorder alone (`strobe-recorder`), which is cut out of it.
Both run where glibc is 2.28 or newer: zig (from PyPI) compiles and links for that one, auditwheel checks it and names
the wheel. Each wheel is then installed into a bare environment, with neither compiler nor node on PATH, and records
a program there; the whole one shows it, too. With --native the compilers of this machine are used: quicker, and for
machines with its glibc.

Wheels for another architecture are compiled here, against the headers of this machine's Pythons: the pyconfig.h of
Debian's 3.11 for arm64 differs from that for x86-64 in no size and no alignment. They are tried out with --try-with:
Pythons of the other architecture, which the kernel starts through an emulator (binfmt_misc).
"""

import argparse
import base64
import csv
import hashlib
import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path

import smoke

WORK = smoke.ROOT / "build/wheels"
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
GLIBC = "2.28"  # RHEL 8 and Debian 10: what most clusters have by now
MACHINES = ("x86_64", "aarch64")
# Wheels that such a machine takes, as pip does not derive them from the newest.
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "linux")
# What the recorder alone consists of, below `strobe/`: whole packages, and single modules.
RECORDER = (
    *("__init__.py", "__init__.pyi", "__main__.py", "_native", "errors.py", "native.py", "registry.py", "py.typed"),
    *("analyses/__init__.py", "lib/", "model/", "present/__init__.py", "present/aligned.py", "record/"),
    *(
        f"cli/{name}.py"
        for name in ("__init__", "finished_run", "installed", "lean_imports", "main", "options", "programs")
    ),
    *(f"cli/verbs/{name}.py" for name in ("__init__", "config", "doctor", "job", "run")),
)
LARGEST_RECORDER_BYTES = 5_000_000
SUMMARY = "The recorder of strobe alone, for nodes on which traces are only recorded"


# zig's linker does not have these two options: its libc++ hides its symbols, and its libunwind defines no symbol that
# is ours. Warnings of another compiler than the one that is checked with do not end this build.
COMPILER = """\
#!/bin/sh
for word do
  shift
  case "$word" in -Wl,--exclude-libs,ALL | -Wl,-z,muldefs) ;; *) set -- "$@" "$word" ;; esac
done
exec {python} -m ziglang {language} -target {target} "$@" -Wno-error
"""


def compilers(place: Path, machine: str) -> dict[str, str]:
    """Return variables of the environment in which CMake compiles for GLIBC on this architecture."""
    target = f"{machine}-linux-gnu.{GLIBC}"
    # The scripts are written anew each time: to ccache they are the same compiler. Symbols are left out by the linker,
    # because strip(1) knows the files of this architecture only.
    made = {"CCACHE_COMPILERCHECK": "content", "LDFLAGS": "-s"}
    for name, language in (("CC", "cc"), ("CXX", "c++")):
        script = place / f"zig-{language}"
        script.write_text(COMPILER.format(python=sys.executable, language=language, target=target))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        made[name] = str(script)
    return made


def build(python: str, archive: Path, environment: Mapping[str, str], machine: str, *, native: bool) -> Path:
    """Build the wheel of one Python from the source archive, repaired and named by auditwheel."""
    place = WORK / python
    # Debian's Pythons have no pip of their own to put into an environment.
    smoke.run(interpreter(python), "-m", "venv", "--without-pip", place / "pip")
    environment = {**os.environ, **environment, "PATH": f"{place / 'pip/bin'}{os.pathsep}{os.environ['PATH']}"}
    needs = tomllib.loads((smoke.ROOT / "pyproject.toml").read_text())["dependency-groups"]["build"]
    pinned = ("-q", "-c", smoke.ROOT / "constraints.txt", "--python", place / "pip")
    smoke.run("uv", "pip", "install", *pinned, "pip", *needs)
    if machine != platform.machine():  # only here: for pip, these are its own machine
        environment["_PYTHON_HOST_PLATFORM"] = f"linux-{machine}"
        environment["SETUPTOOLS_EXT_SUFFIX"] = f".cpython-{python.replace('.', '')}-{machine}-linux-gnu.so"
    options = ("-q", "--no-deps", "--no-build-isolation", "-w", place / "raw")
    smoke.run(place / "pip/bin/pip", "wheel", *options, archive, env=environment)
    (raw,) = (place / "raw").glob("*.whl")
    repair = ["--strip"] if native else ["--plat", f"manylinux_{GLIBC.replace('.', '_')}_{machine}"]
    smoke.run(sys.executable, "-m", "auditwheel", "repair", *repair, "-w", place / "repaired", raw)
    (repaired,) = (place / "repaired").glob("*.whl")
    return repaired


def interpreter(python: str) -> str:
    """Return the path of a Python by its version; ends with a message where there is none."""
    found = shutil.which(f"python{python}")
    if found is None:
        sys.exit(f"wheels: no python{python} on PATH")
    return found


def cut_recorder(wheel: Path, folder: Path) -> Path:
    """Write the recorder alone, from the wheel of the whole: the same files, fewer of them, under a name of its own."""
    with zipfile.ZipFile(wheel) as whole:
        (metadata,) = (name for name in whole.namelist() if name.endswith(".dist-info/METADATA"))
        info = Path(metadata).parent.name
        own = info.replace("strobe-", "strobe_recorder-")
        files = {name: whole.read(name) for name in whole.namelist() if _is_of_recorder(name)}
        for name in whole.namelist():
            if name.startswith(info) and not name.endswith(("RECORD", "METADATA")):
                files[name.replace(info, own)] = whole.read(name)
        files[f"{own}/METADATA"] = _metadata(whole.read(metadata).decode())
    rows = [(name, f"sha256={_digest(data)}", str(len(data))) for name, data in files.items()]
    record = io.StringIO()
    csv.writer(record, lineterminator="\n").writerows([*rows, (f"{own}/RECORD", "", "")])
    files[f"{own}/RECORD"] = record.getvalue().encode()
    made = folder / wheel.name.replace("strobe-", "strobe_recorder-")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    if made.stat().st_size > LARGEST_RECORDER_BYTES:
        sys.exit(f"{made.name} has {made.stat().st_size} bytes, more than {LARGEST_RECORDER_BYTES}")
    return made


def _is_of_recorder(name: str) -> bool:
    inside = name.removeprefix("strobe/")
    return name != inside and any(inside == part or inside.startswith(part) for part in RECORDER)


def _metadata(text: str) -> bytes:
    message = message_from_string(text)
    for name in ("Requires-Dist", "Provides-Extra"):
        del message[name]
    message.replace_header("Name", "strobe-recorder")
    message.replace_header("Summary", SUMMARY)
    return message.as_string().encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def environment_with(python: str, place: Path, wheel: Path, path: str) -> tuple[list[str], dict[str, str]]:
    """Install a wheel into a bare environment of a Python; return the command of strobe there, and its variables."""
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["PATH"] = path
    smoke.run(python, "-m", "venv", "--without-pip", place)
    query = "import sysconfig; print(sysconfig.get_path('purelib'), sysconfig.get_python_version())"
    folder, version = smoke.run(place / "bin/python", "-c", query, env=environment).split()
    # This machine's pip: that of another architecture would be emulated, and slow.
    own = wheel.stem.rpartition("-")[2].split(".")  # several, where auditwheel finds that it also fits older ones
    machine = next(machine for machine in MACHINES if own[0].endswith(machine))
    kinds = [word for tag in (*own, *(f"{tag}_{machine}" for tag in PLATFORMS)) for word in ("--platform", tag)]
    options = ("-q", "--target", folder, "--only-binary", ":all:", "--python-version", version, *kinds)
    smoke.run(WORK / version / "pip/bin/pip", "install", *options, wheel, env=environment)
    return [str(place / "bin/python"), "-m", "strobe"], environment


def try_out(python: str, place: Path, whole: Path, recorder: Path, path: str) -> None:
    """Install both wheels into bare environments: each records, and the whole one reads and shows both traces."""
    place.mkdir(exist_ok=True)
    (place / "program.py").write_text(smoke.PROGRAM)
    commands = {}
    for name, wheel in (("whole", whole), ("recorder", recorder)):
        commands[name], environment = environment_with(python, place / name, wheel, path)
        command = (*commands[name], "run", "-o", f"{name}.strobe", "program.py")
        output = smoke.run(*command, cwd=place, env=environment)
        if output != "499500\n":
            sys.exit(f"{wheel.name}: the recorded program printed something else: {output}")
    for name in ("whole", "recorder"):
        question = (*commands["whole"], "sql", f"{name}.strobe", "select count(*) as n from spans", "--csv")
        spans = int(smoke.run(*question, cwd=place, env=environment).split()[-1])
        if spans < 1000:
            sys.exit(f"{whole.name}, {name}: the trace holds too little: {spans} spans")
    if "work" not in smoke.run(*commands["whole"], "summary", "recorder.strobe", cwd=place, env=environment):
        sys.exit(f"{whole.name}: the summary does not name the function that was called")
    asked = [*commands["recorder"], "summary", "whole.strobe"]
    refused = subprocess.run(asked, capture_output=True, text=True, cwd=place, env=environment, check=False)
    if refused.returncode == 0 or "only the recorder" not in refused.stderr:
        sys.exit(f"{recorder.name}: a question was answered with {refused.stderr or refused.stdout}")
    with view(commands["whole"], place, environment) as address, urllib.request.urlopen(address) as answer:
        if b"<title>" not in answer.read():
            sys.exit(f"{whole.name}: strobe view shows no page")


@contextmanager
def view(strobe: list[str], place: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run `strobe view` while the block runs; yield its address."""
    command = [*strobe, "view", "whole.strobe", "--no-browser"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=place, env=dict(environment), text=True, **output) as process:
        try:
            assert process.stdout is not None
            words = (word for line in process.stdout for word in line.split())
            yield next(word for word in words if word.startswith("http://"))
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="+", metavar="3.N", help="Default: all of 3.11 to 3.15 on PATH.")
    parser.add_argument("--target", choices=MACHINES, default=platform.machine(), help="Default: this machine.")
    parser.add_argument(
        "--try-with", nargs="*", default=[], metavar="PYTHON", help="Pythons of the target, to try the wheels with."
    )
    parser.add_argument("--native", action="store_true", help="compile with this machine's compilers, for its glibc")
    options = parser.parse_args()
    foreign = options.target != platform.machine()
    if foreign and options.native:
        sys.exit(f"wheels: the compilers of this machine compile for {platform.machine()}: leave --native out")
    pythons = options.pythons or [python for python in PYTHONS if shutil.which(f"python{python}")]
    if missing := [python for python in PYTHONS if python not in pythons]:
        print(f"no wheels for Python {', '.join(missing)}", file=sys.stderr)
    tried = {version_of(path): path for path in options.try_with}
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    smoke.WORK = WORK
    (smoke.ROOT / "dist").mkdir(exist_ok=True)
    archive = smoke.build_sdist()
    environment = {} if options.native else compilers(WORK, options.target)
    path = smoke.path_without("gcc", "g++", "cc", "c++", "clang", "node", "npm", "npx")
    for python in pythons:
        whole = build(python, archive, environment, options.target, native=options.native)
        recorder = cut_recorder(whole, whole.parent)
        runs_with = tried.get(python) if foreign else interpreter(python)
        if runs_with:
            try_out(runs_with, WORK / python / "tried", whole, recorder, path)
        for wheel in (whole, recorder):
            shutil.copy2(wheel, smoke.ROOT / "dist" / wheel.name)
            state = "records, and shows what it has recorded" if wheel == whole else "records"
            print(
                f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {state if runs_with else 'not tried'}", flush=True
            )


def version_of(python: str) -> str:
    """Return the version of a Python that is to be tried; ends with a message if it does not start here."""
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_python_version())"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"wheels: {python} does not start here (no emulator in binfmt_misc, or QEMU_LD_PREFIX?): {error}")


if __name__ == "__main__":
    main()
