"""Wheels for other machines: python tools/wheels.py [--pythons 3.11 3.13] [--native]

For each Python, into dist/: the whole of strobe, and the recorder alone (`strobe-recorder`), which is cut out of it.
Both run where glibc is 2.28 or newer: zig (from PyPI) compiles and links for that one, auditwheel checks it and names
the wheel. Each wheel is then installed into a bare environment, with neither compiler nor node on PATH, and records
a program there; the whole one shows it, too. With --native the compilers of this machine are used: quicker, and for
machines with its glibc.
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
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path

import smoke

WORK = smoke.ROOT / "build/wheels"
GLIBC = "2.28"  # RHEL 8 and Debian 10: what most clusters have by now
# What the recorder alone consists of, below `strobe/`: whole packages, and single modules.
RECORDER = (
    *("__init__.py", "__init__.pyi", "__main__.py", "_native", "errors.py", "native.py", "registry.py", "py.typed"),
    *("analyses/__init__.py", "lib/", "model/", "present/__init__.py", "present/aligned.py", "record/"),
    *(f"cli/{name}.py" for name in ("__init__", "installed", "lean_imports", "main", "options", "programs")),
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


def compilers(place: Path) -> dict[str, str]:
    """Return variables of the environment in which CMake compiles for GLIBC on this architecture."""
    target = f"{platform.machine()}-linux-gnu.{GLIBC}"
    made = {}
    for name, language in (("CC", "cc"), ("CXX", "c++")):
        script = place / f"zig-{language}"
        script.write_text(COMPILER.format(python=sys.executable, language=language, target=target))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        made[name] = str(script)
    return made


def build(python: str, archive: Path, environment: Mapping[str, str], *, native: bool) -> Path:
    """Build the wheel of one Python from the source archive, repaired and named by auditwheel."""
    place = WORK / python
    smoke.run(interpreter(python), "-m", "venv", place / "pip")
    environment = {**os.environ, **environment}
    smoke.run(place / "pip/bin/pip", "wheel", "-q", "--no-deps", "-w", place / "raw", archive, env=environment)
    (raw,) = (place / "raw").glob("*.whl")
    options = [] if native else ["--plat", f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"]
    smoke.run(sys.executable, "-m", "auditwheel", "repair", "--strip", *options, "-w", place / "repaired", raw)
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


def try_out(python: str, whole: Path, recorder: Path, path: str) -> None:
    """Install both wheels into bare environments: each records, and the whole one reads and shows both traces."""
    place = WORK / python
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["PATH"] = path
    (place / "program.py").write_text(smoke.PROGRAM)
    for name, wheel in (("whole", whole), ("recorder", recorder)):
        smoke.run(interpreter(python), "-m", "venv", place / name)
        smoke.run(place / name / "bin/pip", "install", "-q", wheel, env=environment)
        command = (place / name / "bin/strobe", "run", "-o", f"{name}.strobe", "program.py")
        output = smoke.run(*command, cwd=place, env=environment)
        if output != "499500\n":
            sys.exit(f"{wheel.name}: the recorded program printed something else: {output}")
    for name in ("whole", "recorder"):
        question = (place / "whole/bin/strobe", "sql", f"{name}.strobe", "select count(*) as n from spans", "--csv")
        spans = int(smoke.run(*question, cwd=place, env=environment).split()[-1])
        if spans < 1000:
            sys.exit(f"python {python}, {name}: the trace holds too little: {spans} spans")
    asked = [place / "recorder/bin/strobe", "summary", "whole.strobe"]
    refused = subprocess.run(asked, capture_output=True, text=True, cwd=place, env=environment, check=False)
    if refused.returncode == 0 or "only the recorder" not in refused.stderr:
        sys.exit(f"{recorder.name}: a question was answered with {refused.stderr or refused.stdout}")
    with view(place / "whole/bin/strobe", place, environment) as address, urllib.request.urlopen(address) as answer:
        if b"<title>" not in answer.read():
            sys.exit(f"{whole.name}: strobe view shows no page")
    print(f"{whole.name}: {whole.stat().st_size / 1e6:.1f} MB; {recorder.name}: {recorder.stat().st_size / 1e6:.1f} MB")


@contextmanager
def view(strobe: Path, place: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run `strobe view` while the block runs; yield its address."""
    command = [str(strobe), "view", "whole.strobe", "--no-browser"]
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
    parser.add_argument("--pythons", nargs="+", default=["3.11"], metavar="3.N", help="Default: 3.11.")
    parser.add_argument("--native", action="store_true", help="compile with this machine's compilers, for its glibc")
    options = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    smoke.WORK = WORK
    (smoke.ROOT / "dist").mkdir(exist_ok=True)
    archive = smoke.build_sdist()
    environment = {} if options.native else compilers(WORK)
    path = smoke.path_without("gcc", "g++", "cc", "c++", "clang", "node", "npm", "npx")
    for python in options.pythons:
        whole = build(python, archive, environment, native=options.native)
        recorder = cut_recorder(whole, whole.parent)
        try_out(python, whole, recorder, path)
        for wheel in (whole, recorder):
            shutil.copy2(wheel, smoke.ROOT / "dist" / wheel.name)


if __name__ == "__main__":
    main()
