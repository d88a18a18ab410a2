"""Exit codes: what `--help` promises, by real commands."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from strobe.cli.main import main
from strobe.model import exit_codes

pytestmark = pytest.mark.every_python

STROBE = str(Path(sys.executable).with_name("strobe"))
ROOT = Path(__file__).parents[2]
STALLING = """
import time
def load(n):
    time.sleep(0.15 if n % 20 == 11 else 0.0005)
def step(n):
    load(n)
for n in range(100):
    step(n)
"""


def strobe(*words: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [STROBE, *map(str, words)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": cwd, "env": clean, **options},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two recorded runs: one that stands still now and then, one with nothing to find."""
    folder = tmp_path_factory.mktemp("runs")
    for name, text in (("stalling", STALLING), ("clean", "def f(): pass\nf()\n")):
        (folder / f"{name}.py").write_text(text)
        assert strobe("run", "-q", f"{name}.py", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",), ("--top", "1")])
def test_findings_end_with_1_only_where_the_user_asked_for_it(runs: Path, form: tuple[str, ...]) -> None:
    gated = strobe("summary", "stalling.strobe", "--fail-on-findings", *form, cwd=runs)
    free = strobe("summary", "stalling.strobe", *form, cwd=runs)
    assert (free.returncode, gated.returncode) == (0, exit_codes.FINDINGS)
    assert free.stdout == gated.stdout != "", "the gate changes the exit code alone"
    assert strobe("summary", "clean.strobe", "--fail-on-findings", *form, cwd=runs).returncode == 0


def test_clocks_that_agree_pass_the_gate(runs: Path) -> None:
    assert strobe("clocks", "clean.strobe", "--fail-on-findings", cwd=runs).returncode == 0


@pytest.mark.parametrize("words", [("summary",), ("summary", "--json"), ("profile", "--csv"), ("--help",), ("doctor",)])
def test_a_full_disk_under_stdout_is_not_a_finding(runs: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = strobe(*words, cwd=runs, stdout=full)
    assert done.returncode == exit_codes.FAILED, done.stderr
    assert done.stderr == "strobe: cannot read or write the output: No space left on device\n"


def test_a_full_disk_under_an_output_file_is_not_a_finding(runs: Path) -> None:
    done = strobe("steps", "clean.strobe", "-o", "/dev/full", cwd=runs)
    assert done.returncode == exit_codes.FAILED
    assert "cannot write '/dev/full': No space left on device" in done.stderr


def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(runs: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        done = strobe("export", "clean.strobe", "-o", pipe, cwd=runs, timeout=60)
        if done.returncode:
            reader.kill()
        text = reader.communicate()[0]
    assert done.returncode == 0, done.stderr
    assert json.loads(text)["traceEvents"]
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "words",
    [
        ("cut", "stalling.strobe", "-o", "new"),
        ("export", "stalling.strobe", "-o", "new.json"),
        ("generate", "stalling.strobe", "--spans", "1e5", "-o", "new"),
    ],
)
def test_a_disk_that_takes_no_more_while_a_trace_is_made_is_not_a_finding(
    runs: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in ("clean", "stalling"):
        os.symlink(runs / f"{name}.strobe", tmp_path / f"{name}.strobe")

    def limited() -> None:  # files end after 512 bytes, as on a disk with no more room
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    # Nor may a module be left cut off in a cache of bytecode, for all that run later.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = strobe(*words, cwd=tmp_path, preexec_fn=limited, env=env)
    assert done.returncode == exit_codes.FAILED, done.stderr
    assert done.stderr.startswith("strobe: cannot ")
    assert "Traceback" not in done.stderr


def test_a_bug_is_a_traceback_with_a_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(kind: str) -> list[str]:
        raise KeyError("broken")

    monkeypatch.setattr("strobe.registry.names", broken)
    assert main(["summary"]) == exit_codes.INTERNAL
    error = capsys.readouterr().err
    assert "KeyError: 'broken'" in error
    assert "a bug in strobe" in error


def test_run_ends_as_the_program_ended_whatever_is_found(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "stalling.py").write_text(STALLING + "raise SystemExit(7)\n")
    done = strobe("run", "stalling.py", cwd=tmp_path)
    assert done.returncode == 7
    assert "Most worth fixing" in done.stderr


def test_help_and_reference_have_the_codes_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert exit_codes.SHORT in capsys.readouterr().out
    reference = (ROOT / "docs/reference/command-line.md").read_text()
    for code, meaning in (exit_codes.OF_READERS | exit_codes.OF_LAUNCHERS).items():
        assert f"| {code} | {meaning} |" in reference


@pytest.mark.parametrize("spelling", ["step-time", "step_time", "gpu-trace", "gpu_trace"])
def test_verbs_have_hyphens_and_are_known_as_python_spells_them(
    runs: Path, spelling: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    for words in ([spelling, "clean.strobe"], ["clean.strobe", spelling]):
        assert main([*words, "--csv"]) == 0
        assert capsys.readouterr().out.startswith("rank,")
    with pytest.raises(SystemExit):
        main([spelling, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: strobe {spelling.replace('_', '-')} ")
    assert main(["--help"]) == 0
    assert "_" not in capsys.readouterr().out.partition("\nlook ")[2].partition("\n\n")[0]


def test_numbers_of_sql_are_numbers_in_json(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    query = (
        "select sum(duration_ns) as total, count(*) as n, avg(duration_ns) as mean, 2.5 as exact, null as nothing, "
        "'nan'::double as undefined, sum(duration_ns)::hugeint * 1000000000000 as huge, [1.5, 2] as list, "
        "max(name) as name, true as yes from spans"
    )
    assert main(["sql", "stalling.strobe", query, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    kinds = {name: type(value) for name, value in row.items()}
    assert kinds == {
        "total": int,
        "n": int,
        "mean": float,
        "exact": float,
        "nothing": type(None),
        "undefined": type(None),
        "huge": int,
        "list": list,
        "name": str,
        "yes": bool,
    }
    assert row["huge"] == row["total"] * 10**12
    assert row["list"] == [1.5, 2]
    assert main(["summary", "stalling.strobe", "--json", "--top", "2"]) == 0
    assert {type(row["count"]) for row in json.loads(capsys.readouterr().out)["rows"]} == {int, type(None)}
