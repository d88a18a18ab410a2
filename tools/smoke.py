"""Builds the sdist, installs it as a user would on a machine without node, and records a program with it.

The wheel is built from the sdist: what is missing in the sdist is missing in the wheel. A second build, from the clone
and without node on PATH, takes node from PyPI (--without-node; slow, downloads 61 MB).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build/smoke"
PROGRAM = "def work(n):\n    return n\n\n\nprint(sum(work(n) for n in range(1000)))\n"
IN_SDIST = ["web/dist/index.html", "native/vendor/zstd/zstd.c", "src/strobe/cli/main.py", "README.md", "LICENSE"]
NOT_IN_SDIST = ["node_modules", "/build/", "__pycache__", ".venv", ".strobe/"]
IN_WHEEL = ["strobe/lib/libstrobe.so", "strobe/include/strobe.h", "strobe/static/index.html", "strobe/cli/main.py"]


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Run a command; end with what it printed when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def path_without(*programs: str) -> str:
    """A PATH of links to everything that is on PATH but the named programs."""
    links = WORK / "bin"
    links.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for entry in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []:
            if entry.name not in programs and not (links / entry.name).exists():
                (links / entry.name).symlink_to(entry.resolve())
    return str(links)


def check_contents(archive: Path, names: list[str], wanted: list[str], unwanted: list[str]) -> None:
    """End with a message when a file is missing in an archive, or should not be in it."""
    missing = [want for want in wanted if not any(name.endswith(want) for name in names)]
    present = [name for name in names if any(part in name for part in unwanted)]
    if missing or present:
        sys.exit(f"{archive.name}: missing {missing}, unwanted {present[:5]}")


def build_sdist() -> Path:
    """The source archive, with the bundled page in it, by the backend's own hook: ./dev has its requirements.

    Made from a copy: the hook installs the page's packages anew, which tests may be using at the same time.
    """
    source = WORK / "source"
    for name in run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    hook = "import sys; sys.path.insert(0, 'build_backend'); import backend; backend.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", hook, WORK / "dist", cwd=source)
    (archive,) = (WORK / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        check_contents(archive, file.getnames(), IN_SDIST, NOT_IN_SDIST)
    return archive


def build_wheel(archive: Path, environment: dict[str, str]) -> Path:
    """The wheel, made from the source archive with pip alone."""
    pip = [sys.executable, "-m", "venv", WORK / "pip"]
    run(*pip)
    scratch = WORK / "scratch"  # in the clone, as all that ccache is to know again
    scratch.mkdir()
    environment = {**environment, "TMPDIR": str(scratch)}
    run(WORK / "pip/bin/pip", "wheel", "-q", "--no-deps", "-w", WORK / "dist", archive, env=environment)
    (wheel,) = (WORK / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        check_contents(wheel, file.namelist(), IN_WHEEL, ["__pycache__"])
    return wheel


def use(wheel: Path, environment: dict[str, str]) -> None:
    """Install the wheel into an environment of its own, and record a program far from the tree."""
    run(sys.executable, "-m", "venv", WORK / "user")
    run(WORK / "user/bin/pip", "install", "-q", wheel, env=environment)
    strobe = WORK / "user/bin/strobe"
    place = WORK / "elsewhere"
    place.mkdir()
    (place / "program.py").write_text(PROGRAM)
    if "strobe" not in run(strobe, "--help", cwd=place, env=environment):
        sys.exit("strobe --help does not contain its name")
    if run(strobe, "run", "-o", "t.strobe", "program.py", cwd=place, env=environment) != "499500\n":
        sys.exit("the recorded program printed something else")
    query = "select count(*) as n from spans"
    answer = run(strobe, "sql", "t.strobe", query, "--csv", cwd=place, env=environment)
    if int(answer.split()[-1]) < 1000:
        sys.exit(f"the trace holds too little: {answer}")
    print(f"smoke test passed: {wheel.name}, {int(answer.split()[-1])} spans recorded")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-node", action="store_true", help="also build from the clone without node on PATH")
    options = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    archive = build_sdist()
    environment["PATH"] = path_without("node", "npm", "npx")
    use(build_wheel(archive, environment), environment)
    if options.without_node:
        shutil.copytree(ROOT, WORK / "clone", ignore=shutil.ignore_patterns("build", ".venv", "node_modules", "dist"))
        run(
            WORK / "pip/bin/pip",
            "wheel",
            "-q",
            "--no-deps",
            "-w",
            WORK / "clone-wheel",
            WORK / "clone",
            env=environment,
        )
        print("built from the clone with node from PyPI")


if __name__ == "__main__":
    main()
