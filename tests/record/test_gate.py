"""Gates for recorded programs: strobe check, strobe bench against a revision, the fixture of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM = """
def load(n):
    return n
def step(n):
    load(n)
for n in range(200):
    step(n)
"""
COMPILED = """
import sys
import torch
@torch.compile(backend="eager")
def work(x):
    y = torch.sin(x)
    if len(sys.argv) > 1:
        torch._dynamo.graph_break()
    return torch.cos(y)
x = torch.ones(64)
for n in range(60):
    work(x)
"""


def run(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, env={**clean, **environment})


def test_one_more_call_is_found_in_one_run_of_each(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PROGRAM)
    (tmp_path / "b.py").write_text(PROGRAM.replace("    load(n)", "    load(n); load(n)"))
    for name in ("a", "b"):
        assert run(STROBE, "run", "-q", f"{name}.py", cwd=tmp_path).returncode == 0
    run(STROBE, "check", "a.strobe", "--baseline", "base.json", "--save", cwd=tmp_path)
    assert run(STROBE, "check", "a.strobe", "--baseline", "base.json", cwd=tmp_path).returncode == 0
    machine = json.loads((tmp_path / "base.json").read_text())["points"][0]["runs"][0]["machine"]
    assert machine["cpu"], "another CPU is refused by its name"
    (tmp_path / "base.json").write_text((tmp_path / "base.json").read_text().replace(" (a.py)", " (b.py)"))
    found = run(STROBE, "check", "b.strobe", "--baseline", "base.json", cwd=tmp_path)
    assert found.returncode == 1
    assert "load (b.py) 1 -> 2" in found.stderr


def test_a_bench_compares_with_a_revision_in_a_work_tree_of_its_own(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return run("git", *identity, *words, cwd=tmp_path).stdout

    git("init", "-q")
    (tmp_path / "a.py").write_text(PROGRAM)
    git("add", "a.py")
    git("commit", "-q", "-m", "one")
    (tmp_path / "a.py").write_text(PROGRAM.replace("    load(n)", "    load(n); load(n)"))
    found = run(STROBE, "bench", "--against", "HEAD", "--budget", "0s", "a.py", cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    assert "load (a.py) 1 -> 2" in found.stderr
    assert git("worktree", "list").count("\n") == 1, "the work tree is gone"


def test_a_bench_without_time_is_inconclusive_and_a_program_that_fails_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("pass\n")
    (tmp_path / "b.py").write_text("raise SystemExit('no data')\n")
    found = run(STROBE, "bench", "--plain", "--against", "a.py", "--budget", "0s", "a.py", cwd=tmp_path)
    assert found.returncode == 3
    assert "further pairs" in found.stderr
    failed = run(STROBE, "bench", "--plain", "--against", "b.py", "a.py", cwd=tmp_path)
    assert failed.returncode == 5
    assert failed.stderr.strip().endswith("ended with 1: no data")


@pytest.mark.torch
def test_one_more_graph_break_is_found_in_one_run_of_each(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "a.py").write_text(COMPILED)
    assert run(STROBE, "run", "-q", "-o", "whole", "a.py", cwd=tmp_path).returncode == 0
    run(STROBE, "check", "whole.strobe", "--baseline", "base.json", "--save", cwd=tmp_path)
    assert run(STROBE, "run", "-q", "-o", "broken", "a.py", "x", cwd=tmp_path).returncode == 0
    found = run(STROBE, "check", "broken.strobe", "--baseline", "base.json", cwd=tmp_path)
    assert found.returncode == 1
    assert "graph breaks of inference 0 -> 1 per step: torch_dynamo_resume_in_work_at_" in found.stderr


def test_the_fixture_of_pytest_fails_a_test_that_does_more_than_its_baseline(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["strobe.integrations.pytest"]\n')
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "def inner(): pass\n"
        "def work():\n"
        "    for _ in range(int(os.environ['TIMES'])): inner()\n"
        "def test_it(strobe_check): strobe_check(work)\n"
    )

    def test(*words: str, times: int) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "pytest", "-q", "-W", "error", *words, cwd=tmp_path, TIMES=str(times))

    assert "save it with pytest --strobe-save" in test(times=1).stdout
    assert test("--strobe-save", times=1).returncode == 0
    assert test(times=1).returncode == 0
    more = test(times=2)
    assert more.returncode == 1
    assert "inner (test_it.py) 1 -> 2" in more.stdout
