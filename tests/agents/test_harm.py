"""What a client may do to `strobe mcp`: leave, flood it, send nonsense, name paths outside, ask SQL that never ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from strobe.agents.texts import MOST_BYTES, answer
from tests.agents.agent import STROBE, Agent, agent, unpacked

READ_ONLY = "only one SELECT"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, and beside it one that is not served; a link in it leads there."""
    whole = tmp_path_factory.mktemp("served")
    inside = whole / "inside"
    inside.mkdir()
    unpacked(inside, "gpu", "training-kept")
    shutil.copytree(inside / "gpu.strobe", whole / "secret.strobe")
    (inside / "link.strobe").symlink_to(whole / "secret.strobe")
    return inside


@pytest.fixture(scope="module")
def one(folder: Path) -> Iterator[Agent]:
    with agent([folder]) as found:
        yield found


def started(folder: Path) -> subprocess.Popen[str]:
    """Start a server as a client does, and shake hands."""
    server = subprocess.Popen(
        [STROBE, "mcp", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    send(server, {"id": 0, "method": "initialize", "params": hello})
    assert reply(server)["result"]["serverInfo"]["name"] == "strobe"
    send(server, {"method": "notifications/initialized"})
    return server


def send(server: subprocess.Popen[str], message: dict[str, object]) -> None:
    write(server, json.dumps({"jsonrpc": "2.0", **message}))


def write(server: subprocess.Popen[str], line: str) -> None:
    assert server.stdin
    server.stdin.write(line + "\n")
    server.stdin.flush()


def reply(server: subprocess.Popen[str]) -> dict[str, dict[str, object]]:
    assert server.stdout
    found: dict[str, dict[str, object]] = json.loads(server.stdout.readline())
    return found


def ask(server: subprocess.Popen[str], number: int, tool: str, **arguments: object) -> None:
    send(server, {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


NEVER_ENDS = "select count(*) from range(1000000000) a, range(1000000000) b"


@pytest.mark.parametrize("query", [NEVER_ENDS, "select 1"])
def test_a_client_that_leaves_in_the_middle_of_an_answer_leaves_no_process(folder: Path, query: str) -> None:
    server = started(folder)
    for number in range(1, 20):
        ask(server, number, "sql", trace="gpu", query=query)
    assert server.stdin
    assert server.stdout
    server.stdout.close()
    server.stdin.close()
    assert server.wait(15) == 0
    assert server.stderr
    assert "Traceback" not in server.stderr.read()


def test_the_server_ends_when_stdin_ends(folder: Path) -> None:
    server = started(folder)
    out, error = server.communicate(timeout=15)
    assert (out, error, server.returncode) == ("", "", 0)


def test_ctrl_c_ends_the_server_while_it_waits(folder: Path) -> None:
    server = started(folder)
    server.send_signal(signal.SIGINT)
    assert server.wait(15) == -signal.SIGINT


def test_500_calls_at_once_are_all_answered(one: Agent) -> None:
    def call(number: int) -> tuple[str, bool]:
        return one.call("sql", trace="gpu", query=f"select {number} as number")

    with ThreadPoolExecutor(500) as threads:
        answers = list(threads.map(call, range(500)))
    assert [(text.splitlines()[-1], is_error) for text, is_error in answers] == [(str(at), False) for at in range(500)]


NONSENSE = (
    "{",
    "null",
    "[1, 2]",
    '{"jsonrpc": "2.0"}',
    '{"jsonrpc": "2.0", "id": 7, "method": "no/such/method"}',
    '{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": 3}',
    '{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": 3}}',
    "\0" * 100,
    "x" * 1_000_000,
)


def test_nonsense_is_not_the_end(folder: Path) -> None:
    server = started(folder)
    for line in NONSENSE:
        write(server, line)
    ask(server, 100, "runs")
    while (answered := reply(server)).get("id") != 100:
        assert "error" in answered
    assert "training-kept.strobe" in json.dumps(answered)
    assert server.stdin
    server.stdin.close()
    assert server.wait(15) == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("summarise", {}, "no tool 'summarise'. Tools: runs, summary, "),
        ("summary", {"run": "gpu"}, "'summary' has no parameter 'run'. Known: trace"),
        ("summary", {"trace": "nothing"}, "no such trace"),
        ("summary", {"trace": "gpu\0"}, "'gpu\\x00' is not a path"),
        ("step", {"trace": "gpu"}, "'step' needs 'step'"),
        ("step", {"trace": "gpu", "step": "step:999"}, "no step 999 in this run. Steps: 0 to 23"),
        ("step", {"trace": "gpu", "step": "seven"}, "'seven' is not a handle of a step. Example: step:1"),
        ("span", {"trace": "gpu", "span": "span:0.999999999"}, "no span 'span:0.999999999' in this run"),
        ("spans", {"trace": "gpu", "where": "rank:7"}, "no rank 7 in this run. Its processes have no ranks."),
        ("spans", {"trace": "gpu", "where": "planet:7"}, "'planet:7' is not a handle. Handles: step:14, "),
        ("spans", {"trace": "gpu", "where": "time:3ms-1ms"}, "ends before it begins"),
        ("findings", {"trace": "gpu", "finding": "finding:99"}, "no finding 99 in this run; it has "),
        ("ask", {"trace": "gpu", "analysis": "moods"}, "no analysis 'moods'. Analyses: breakdown, "),
        ("ask", {"trace": "gpu", "analysis": "kernels", "options": {"by": "mood"}}, "'mood' is not one of name, "),
        ("ask", {"trace": "gpu", "analysis": "kernels", "sort": "mood"}, "no column 'mood' in this table"),
        ("ask", {"trace": "gpu", "analysis": "kernels", "top": 10**30}, "is not a whole number from 1 to 1000"),
        ("what_if", {"trace": "gpu", "change": "nothing*=0.5"}, "nothing"),
        ("sql", {"trace": "gpu", "query": "select * from moods"}, "moods"),
        ("sql", {"trace": "gpu", "query": "drop table spans"}, READ_ONLY),
        ("sql", {"trace": "gpu", "query": "select 1; select 2"}, READ_ONLY),
        ("sql", {"trace": "gpu", "query": "create table t as select 1"}, READ_ONLY),
        ("sql", {"trace": "gpu", "query": "copy (select 1) to 'written.csv'"}, READ_ONLY),
        ("sql", {"trace": "gpu", "query": "attach 'written.db'"}, READ_ONLY),
        ("sql", {"trace": "gpu", "query": "select * from read_csv('/etc/passwd')"}, "Permission Error"),
        ("sql", {"trace": "gpu", "query": "select * from '/etc/passwd'"}, "/etc/passwd"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_mistake_gets_a_sentence(one: Agent, tool: str, arguments: dict[str, object], sentence: str) -> None:
    text, is_error = one.call(tool, **arguments)
    assert is_error
    assert sentence in text
    assert len(text) < 1500
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "path",
    ["..", "../secret", "../secret.strobe", "link", "link.strobe", "/etc/passwd", "gpu.strobe/../../secret.strobe"],
)
@pytest.mark.parametrize("tool", ["summary", "runs", "compare", "ask"])
def test_what_is_outside_of_the_folders_is_refused(one: Agent, folder: Path, tool: str, path: str) -> None:
    arguments = {
        "summary": {"trace": path},
        "runs": {"folder": path},
        "compare": {"trace": "gpu", "other": path},
        "ask": {"trace": "gpu", "analysis": "compare", "options": {"other": path}},
    }[tool]
    text, is_error = one.call(tool, **arguments)
    assert is_error
    assert text == f"'{path}' is outside of what this server may read. It reads: {folder}"


def test_the_list_of_runs_has_no_link_to_the_outside(one: Agent) -> None:
    assert [row["name"] for row in one.rows("runs")] == ["gpu.strobe", "training-kept.strobe"]


def test_sql_that_never_ends_is_stopped(one: Agent) -> None:
    text, is_error = one.call("sql", trace="gpu", query=NEVER_ENDS)
    assert is_error
    assert text.startswith("the query took more than 20 s and was stopped")


def test_rows_without_end_are_read_on_with_skip(one: Agent) -> None:
    query = "select range as number, 'x' as x from range(1000000000000)"
    assert [row["number"] for row in one.rows("sql", trace="gpu", query=query, top=3, skip=100)] == [
        "100",
        "101",
        "102",
    ]
    assert one.ask("sql", trace="gpu", query=query, top=3).endswith("[lines 1 to 3 of 3 and more; the next: skip=3]")


def test_nothing_is_written_into_the_folders(one: Agent, folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["gpu.strobe", "link.strobe", "training-kept.strobe"]


def test_a_long_answer_is_cut_and_names_how_to_read_on(one: Agent) -> None:
    got, skip = list[str](), 0
    while True:
        text = one.ask("sql", trace="training-kept", query="select name, location, row from spans", skip=skip, top=1000)
        assert len(text.encode()) <= MOST_BYTES
        lines = [line for line in text.splitlines()[1:] if "\t" in line][1:]
        got += lines
        if "the next: skip=" not in text or len(got) > 600:
            break
        skip = int(text.rpartition("skip=")[2].rstrip("]"))
        assert skip == len(got)
    assert len(got) > 600
    assert len(set(got)) == len(got)


def test_long_names_are_cut_only_where_whole_ones_do_not_fit() -> None:
    names = [["n" * 3000, str(at)] for at in range(9)]
    assert answer([], names, top=1).splitlines()[0] == "\t".join(names[0])
    assert len(answer([], names).encode()) <= MOST_BYTES
    assert "whole ones with top=1" in answer([], names)
    assert len(answer(["h" * 9000], [["ä" * 9000] * 200]).encode()) <= MOST_BYTES


def test_a_run_that_was_recorded_again_is_read_again(tmp_path: Path) -> None:
    unpacked(tmp_path, "gpu", "training-kept")
    (tmp_path / "gpu.strobe").rename(tmp_path / "run.strobe")
    with agent([tmp_path]) as one:
        assert "gpu_training.py" in one.ask("summary", trace="run")
        shutil.rmtree(tmp_path / "run.strobe")
        (tmp_path / "training-kept.strobe").rename(tmp_path / "run.strobe")
        assert "train_cnn.py" in one.ask("summary", trace="run")


def test_one_trace_may_be_served_alone(tmp_path: Path) -> None:
    unpacked(tmp_path, "gpu", "training-kept")
    with agent([tmp_path / "gpu.strobe"]) as one:
        assert [row["name"] for row in one.rows("runs")] == ["gpu.strobe"]
        assert "gpu_training.py" in one.ask("summary")
        assert one.call("summary", trace="training-kept")[1]


def test_there_are_at_most_12_tools_that_only_read(one: Agent) -> None:
    tools = one.tools()
    assert len(tools) <= 12
    assert all(each.annotations.read_only_hint for each in tools)
    assert all(each.description and each.input_schema["additionalProperties"] is False for each in tools)


def test_without_the_package_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError('not here')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([STROBE, "mcp", str(tmp_path)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert done.stderr == 'strobe: agents need the package mcp\n  Install it: pip install "strobe[mcp]"\n'


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run([STROBE, "mcp", str(tmp_path / "no")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert "no such trace" in done.stderr
