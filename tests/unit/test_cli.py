"""The command line as a user meets it: real processes, a real recorded trace."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

import strobe as strobe_package
from strobe.cli.main import main
from strobe.record.launch.run_program import RunResult

pytestmark = pytest.mark.every_python

STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM = """
import sys
def inner(n):
    return n
def outer():
    for n in range(20):
        inner(n)
for _ in range(50):
    outer()
print("result")
sys.exit(3)
"""


def strobe(*words, cwd=None, env=None, **options):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
    return subprocess.run(
        [STROBE, *map(str, words)], capture_output=True, text=True, cwd=cwd, env={**clean, **(env or {})}, **options
    )


@dataclass(frozen=True)
class Answer:
    """What one command printed, and its exit code."""

    stdout: str
    stderr: str
    returncode: int


@pytest.fixture
def ask(run, monkeypatch, capsys):
    """Ask the recorded run in this process: starting an interpreter for each takes longer than all questions."""
    monkeypatch.chdir(run[0])

    def call(*words):
        code = main([*map(str, words)])
        out, err = capsys.readouterr()
        return Answer(out, err, code)

    return call


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with one recorded run in it, and what recording it printed."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "program.py").write_text(PROGRAM)
    return folder, strobe("run", "program.py", cwd=folder)


def test_help_is_short_begins_with_examples_and_names_every_verb():
    done = strobe("--help")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 110
    assert lines[2].startswith("  strobe run")
    for verb in ("run", "view", "summary", "info", "steps", "operators", "profile", "sql"):
        assert f" {verb} " in f" {' '.join(lines)} "
    assert strobe().stdout == done.stdout


def test_every_verb_has_help():
    for verb in ("run", "view", "summary", "info", "steps", "operators", "profile", "sql"):
        done = strobe(verb, "--help")
        assert (done.returncode, done.stderr) == (0, ""), verb
        assert f"usage: strobe {verb}" in done.stdout
    assert "Which operators take the time?" in strobe("--help-all").stdout


def test_run_keeps_output_and_exit_code_and_talks_on_stderr_only(run):
    folder, done = run
    assert (done.stdout, done.returncode) == ("result\n", 3)
    assert "VERDICT" in done.stderr
    assert "strobe view program.strobe" in done.stderr
    assert len(done.stderr.splitlines()) <= 40
    saved = json.loads((folder / "program.strobe/summary.json").read_text())
    assert saved.pop("checksum")
    assert saved == json.loads(strobe("summary", "program.strobe", "--json", cwd=folder).stdout)
    assert list((folder / "program.strobe").glob("*.tiles"))


def test_the_summary_is_a_table_for_whoever_asks_for_rows(ask):
    whole = json.loads(ask("summary", "last", "--json").stdout)
    rows = list(csv.DictReader(io.StringIO(ask("summary", "last", "--csv").stdout)))
    assert rows[0]["section"] == "verdict"
    assert rows[0]["text"] == whole["verdict"]["text"]
    hot = ask("summary", "last", "--where", "section = 'hot'", "--sort", "duration_ns", "--top", "1", "--csv").stdout
    largest = max(whole["hot"], key=lambda each: each["self_ns"])
    (row,) = csv.DictReader(io.StringIO(hot))
    assert (row["name"], row["duration_ns"]) == (largest["name"], str(largest["self_ns"]))


def test_the_summary_is_also_what_a_file_alone_means(ask):
    shown = ask("summary", "last").stdout
    assert "VERDICT" in shown
    assert ask("program.strobe").stdout == shown
    assert ask("program.strobe", "info").stdout == ask("info").stdout


def test_readers_count_what_the_program_did(ask):
    done = ask("profile", "--csv", "--step", "all")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert (rows["outer"]["calls"], rows["inner"]["calls"]) == ("50", "1000")
    assert done.stderr == ""


def test_columns_are_chosen_by_their_headings_too(ask):
    table = ask("profile", "last", "--format", "table").stdout.splitlines()[0]
    assert "self" in table.split()
    done = ask("profile", "last", "--csv", "--columns", "name,self,total", "--sort", "self")
    assert done.stdout.splitlines()[0] == "name,self_ns,total_ns"


def test_the_words_of_sql_come_in_any_order(ask):
    query = "select count(*) as n from spans"
    orders = (("last", "--json", query), ("--json", "last", query), ("last", query, "--json"), (query, "--json"))
    answers = [json.loads(ask("sql", *words).stdout)["rows"] for words in orders]
    assert answers == [answers[0]] * 4


def test_options_of_rows_and_columns(ask):
    base = ("profile", "last", "--step", "all", "--csv", "--columns", "name,calls")
    kept = ask(*base, "--where", "calls >= 50", "--sort", "calls")
    assert kept.stdout == "name,calls\ninner,1000\nouter,50\n"
    assert ask(*base, "--sort", "calls:desc", "--top", "1").stdout == "name,calls\ninner,1000\n"


@pytest.mark.parametrize("form", ["json", "csv", "md", "table", "nvprof"])
def test_every_form_of_output_goes_to_stdout_or_a_file(ask, form, tmp_path):
    done = ask("profile", "--format", form)
    assert done.returncode == 0
    assert "inner" in done.stdout
    written = ask("profile", "--format", form, "-o", tmp_path / "out")
    assert written.stdout == ""
    assert (tmp_path / "out").read_text() == done.stdout


def test_tree_and_inverted_are_flags(ask):
    tree = ask("profile", "--tree", "--step", "all", "--csv").stdout
    assert tree == ask("profile", "--form", "tree", "--step", "all", "--csv").stdout
    names = [row["name"] for row in csv.DictReader(io.StringIO(tree))]
    assert names.index("outer") < names.index("inner")


def test_sql_from_the_command_line(ask):
    query = "select count(*) as n from spans where name = 'inner'"
    assert ask("sql", query).stdout == "n\n1000\n"
    assert ask("sql", "last", query, "--json").stdout == ask("sql", query, "--json").stdout
    refused = ask("sql", "drop table spans")
    assert refused.returncode == 2
    assert "only one SELECT" in refused.stderr


def test_an_empty_answer_says_what_would_have_recorded_it(ask):
    done = ask("operators", "--csv")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1, "the header alone"
    assert "--trace +torch" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("operatorz",), 2, "did you mean 'operators'"),
        (("info", "--nosuch"), 2, "--nosuch"),
        (("info", "nowhere.strobe"), 4, "no such trace: 'nowhere.strobe'"),
        (("nowhere.strobe",), 4, "no such trace"),
        (("info", "program.py"), 4, "not in a known format"),
        (("info", "last~7"), 2, "no run 'last~7'"),
        (("profile", "--sort", "nosuch"), 2, "no column 'nosuch'"),
        (("profile", "--where", "nosuch > 1"), 2, "nosuch"),
        (("profile", "--columns", "name,nosuch"), 2, "nosuch"),
        (("profile", "--step", "abc"), 2, "'abc' names no steps"),
        (("profile", "--form", "nosuch"), 2, "nosuch"),
        (("profile", "-o", "/proc/nowhere/file"), 5, "cannot write '/proc/nowhere/file'"),
        (("info", "--format", "nvprof"), 2, "calls"),
        (("export", "--to", "line_profiler"), 3, "no lines were counted"),
        (("run",), 2, "nothing to run"),
        (("run", "--preset", "nosuch", "program.py"), 2, "nosuch"),
        (("run", "--trace", "+nosuch", "program.py"), 2, "nosuch"),
        (("run", "missing.py"), 2, "missing.py"),
        (("run", "-o", "%x", "program.py"), 2, "%x"),
        (("run", "-o", "/proc/nowhere/run", "program.py"), 125, "/proc/nowhere"),
        (("run", "--", "no-such-command"), 127, "no-such-command"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(run, ask, words, code, said):
    folder, _ = run
    before = sorted(folder.iterdir())
    done = ask(*words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sum(line.startswith("strobe: ") for line in done.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before, "nothing is left behind"


def test_a_syntax_error_is_the_users_own_traceback_once(tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    done = strobe("run", "broken.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("SyntaxError") == 1


def test_output_patterns_and_names_that_are_taken(tmp_path):
    (tmp_path / "p.py").write_text("pass")
    for _ in range(2):
        assert strobe("run", "-q", "-o", "runs/%n-x", "p.py", cwd=tmp_path).stderr == ""
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["p-x-2.strobe", "p-x.strobe"]


def test_the_options_of_the_program_are_its_own(tmp_path):
    (tmp_path / "p.py").write_text("import sys; print(sys.argv)")
    done = strobe("run", "-q", "p.py", "--json", "-o", "x", "--", "--preset", cwd=tmp_path)
    assert done.stdout == "['p.py', '--json', '-o', 'x', '--', '--preset']\n"
    module = strobe("run", "-q", "-m", "p", "-q", cwd=tmp_path)
    assert "'-q'" in module.stdout
    assert strobe("run", "-q", "-c", "import sys; print(sys.argv)", "a", cwd=tmp_path).stdout == "['-c', 'a']\n"


def test_summary_choices_of_run(tmp_path):
    (tmp_path / "p.py").write_text("def f(): pass\nf()")
    assert strobe("run", "--summary", "none", "p.py", cwd=tmp_path).stderr == ""
    assert json.loads(strobe("run", "--json", "p.py", cwd=tmp_path).stderr)["program"] == "p.py"


def test_the_kill_switch_records_nothing(tmp_path):
    (tmp_path / "p.py").write_text("print(1)")
    done = strobe("run", "p.py", cwd=tmp_path, env={"STROBE_DISABLE": "1"})
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["p.py"]


def test_a_reader_that_leaves_early_is_no_error(run):
    folder, _ = run
    command = f'{STROBE} sql "select * from spans cross join range(200)" | head -1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "141"
    assert done.stderr == ""


def test_the_names_of_runs_are_the_same_in_python(run, monkeypatch):
    folder, _ = run
    monkeypatch.chdir(folder)
    assert [path.name for path in strobe_package.runs()] == ["program.strobe"]
    assert strobe_package.last().info.program == "program.py"
    assert strobe_package.open("program").span_count == strobe_package.last().span_count > 1000


def test_a_command_without_anything_to_record_keeps_its_result(tmp_path):
    done = strobe("run", "--", "sh", "-c", "echo result", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("result\n", 0)
    assert "holds no recorded process" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_unicode_on_stdout_the_summary_is_plain(run):
    folder, _ = run
    done = strobe("summary", cwd=folder, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()


def on_a_terminal(folder, *words, env=None):
    """Run strobe with stdout on a pseudo-terminal, 120 columns wide; return (stdout, stderr)."""
    leader, follower = pty.openpty()
    clean = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **(env or {})}
    process = subprocess.Popen([STROBE, *words], stdout=follower, stderr=subprocess.PIPE, cwd=folder, env=clean)
    os.close(follower)
    out = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        out += chunk
    _, err = process.communicate()
    os.close(leader)
    return out.decode(), err.decode()


def test_a_terminal_gets_units_and_the_first_rows_and_is_told_of_the_rest(run):
    folder, _ = run
    out, err = on_a_terminal(folder, "profile", "--step", "all", env={"NO_COLOR": "1"})
    assert "total" in out
    assert "total_ns" not in out
    assert " us" in out
    assert "\x1b[3" not in out, "colours although NO_COLOR is set"
    assert "the whole run" in err
    out, err = on_a_terminal(folder, "sql", "select * from range(300)")
    assert out.count("\n") == 301


@pytest.fixture
def no_pandas(tmp_path):
    """An environment that notices an import of pandas: pyarrow asks for it, to see whether its first array is its."""
    noticed = tmp_path / "noticed"
    (tmp_path / "pandas.py").write_text(f"open({str(noticed)!r}, 'w').close()\n")
    yield {"PYTHONPATH": str(tmp_path)}
    assert not noticed.exists()


def test_questions_do_not_wait_for_pandas(run, no_pandas):
    done = strobe("profile", "--csv", cwd=run[0], env=no_pandas)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("name,paradigm,")


def test_the_first_answer_of_a_page_does_not_wait_for_pandas(run, no_pandas):
    command, env = [STROBE, "view", "--no-browser"], {**os.environ, **no_pandas}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=run[0], env=env) as page:
        address = page.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}api/tree", timeout=60) as answer:
            assert answer.status == 200
        page.terminate()


def test_a_folder_that_has_been_removed_is_one_sentence(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words, code in ((["config"], 5), (["doctor"], 5), (["run", "-c", "pass"], 125)):
        assert main(words) == code
        assert "the current folder has been removed" in capsys.readouterr().err


def test_a_path_that_may_not_be_looked_at_is_one_sentence(monkeypatch, capsys):
    def refused(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.stat", refused)
    assert main(["info", "secret/a.strobe"]) == 4
    assert capsys.readouterr().err == "strobe: cannot look at 'secret/a.strobe': Permission denied\n"


def test_words_of_trace_may_begin_with_a_dash(monkeypatch):
    seen = []

    def run(program, **settings):
        seen.append((program, "python_calls" in settings["adapters"]))
        return RunResult(None, 0, None)

    monkeypatch.setattr("strobe.record.launch.run_program.run", run)
    for words in (["--trace", "-python"], ["-t", "-python"], ["--trace=-python"], ["-o", "x", "-t", "-python"]):
        assert main(["run", *words, "--", "true", "-t", "-x"]) == 0
    assert seen == [(["--", "true", "-t", "-x"], False)] * 4
