"""The server on a real port: what is left of a viewer that leaves, what never becomes a request, and `strobe view`."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from strobe.advice import rank
from strobe.api.trace import Trace
from strobe.cli.verbs.view import sources, ssh_line
from strobe.model.cancellation import checkpoint
from strobe.server.http.app import Application
from strobe.server.http.connections import Connections
from strobe.server.http.launch_token import LaunchToken
from strobe.server.http.serve import configured
from strobe.server.http.trace_library import Library, Source
from strobe.server.routing import routes
from strobe.server.routing.bodies import Body
from strobe.server.trace_context import TraceContext
from tests.unit.hand_made import HandMadeProcess, make_trace, span

pytestmark = pytest.mark.every_python

STROBE = str(Path(sys.executable).with_name("strobe"))
TOKEN = "a-token"
FOREVER_S = 60


class Circle:
    """Garbage that only the collector finds."""

    itself: Circle


@contextmanager
def served(app: Application, connections: Connections | None = None) -> Iterator[int]:
    """Serve an application as `strobe view` does; the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(configured(app, connections))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
            app.queue.close()


@pytest.fixture
def app(tmp_path: Path) -> Application:
    trace = make_trace({"main": [span("step", 0, 1000)]})
    return Application([Source(tmp_path, lambda: trace)], token=TOKEN, static=tmp_path)


def asked(port: int, head: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=FOREVER_S)
    connection.sendall(head)
    return connection


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + FOREVER_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_viewer_that_disconnects_leaves_no_work_behind(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = [threading.Event() for _ in range(6)]

    def slow(_: object, limit: int, **_others: object) -> Body:
        begun[limit].set()
        while True:
            checkpoint()
            time.sleep(0.001)

    monkeypatch.setitem(routes.ROUTES, "steps", dataclasses.replace(routes.ROUTES["steps"], answer=slow))
    with served(app) as port:
        viewers = [
            asked(port, f"GET /{TOKEN}/api/steps?limit={n} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            for n in range(1, 6)
        ]
        wait_until(lambda: app.queue.unfinished == 5 and sum(each.is_set() for each in begun) == 2)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/api/meta", timeout=FOREVER_S) as answer:
            assert answer.status == 200, "others are answered meanwhile"
        # First those who wait: else one of them might get the turn of one who left, before it is seen to leave, too.
        waiting = [viewer for viewer, event in zip(viewers, begun[1:], strict=True) if not event.is_set()]
        for viewer in waiting:
            viewer.close()
        wait_until(lambda: app.queue.unfinished == 2)
        for viewer in viewers:
            viewer.close()
        wait_until(lambda: app.queue.unfinished == 0)
    assert sum(each.is_set() for each in begun) == 2, "what waited was not begun"


def test_a_run_whose_tiles_are_being_built_keeps_nobody_else_waiting(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = threading.Event()

    def building(_: object, locations: object, level: int, tile: int) -> Body:
        built.wait(FOREVER_S)
        return Body(b"picture", "application/octet-stream")

    monkeypatch.setitem(routes.ROUTES, "cells", dataclasses.replace(routes.ROUTES["cells"], answer=building))
    monkeypatch.setattr("strobe.server.trace_context.TraceContext.has_tiles", lambda _, of_rows: False)
    with served(app) as port:
        pictures = [
            asked(
                port,
                f"GET /{TOKEN}/api/cells?locations=0&level=0&tile={n} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
            )
            for n in range(4)
        ]
        wait_until(lambda: app.queue.unfinished == 4)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/api/meta", timeout=FOREVER_S) as answer:
            assert answer.status == 200
        assert app.queue.unfinished == 4
        built.set()
        for each in pictures:
            assert each.recv(100).startswith(b"HTTP/1.1 200")
            each.close()


def test_a_summary_shows_how_much_of_it_is_made_while_it_is_made(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    real = rank.judged

    def judged(trace: Trace) -> object:
        begun.set()
        assert may_end.wait(FOREVER_S)
        return real(trace)

    monkeypatch.setattr("strobe.advice.rank.judged", judged)
    with served(app) as port, ThreadPoolExecutor(1) as other:

        def get(question: str) -> Any:
            with urllib.request.urlopen(f"http://localhost:{port}/{TOKEN}/api/{question}") as answer:
                return json.load(answer)

        assert get("progress") == {}
        summary = other.submit(get, "summary")
        assert begun.wait(FOREVER_S)
        (share,) = get("progress").values()
        assert list(get("progress")) == ["summary"]
        assert 0.5 < share < 1  # steps and tables are there, rules are not
        may_end.set()
        assert summary.result()["verdict"]
        wait_until(lambda: get("progress") == {})


@pytest.mark.parametrize(
    "head",
    [
        b"GET /a-token/api/search/spans?text=" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /a-token/api/meta HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"GET /a-token/api/meta\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /a-token/api/meta HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["1 MB query", "1 MB header", "null byte", "no address", "TLS", "negative length"],
)
def test_what_is_no_request_is_refused_and_the_next_one_answered(app: Application, head: bytes) -> None:
    with served(app) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=FOREVER_S) as connection:
            try:
                connection.sendall(head)
                answer = connection.recv(4096)
            except ConnectionError:
                answer = b"HTTP/1.1 4 (it hung up before all was said)"
        assert answer.startswith(b"HTTP/1.1 4")
        assert b"Traceback" not in answer
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/api/meta", timeout=FOREVER_S) as meta:
            assert meta.status == 200


def closed(connection: socket.socket) -> bool:
    """Wait until the server closes a connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_half_requests_without_the_token_shut_nobody_out(app: Application, caplog: pytest.LogCaptureFixture) -> None:
    with served(app, Connections(head_s=FOREVER_S)) as port:
        half = [asked(port, b"GET /a-token/api/meta HTTP/1.1\r\nHost: local") for _ in range(520)]
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/api/meta", timeout=FOREVER_S) as meta:
                assert meta.status == 200
        assert closed(half[0])  # which waited longest
        half[-1].sendall(b"host\r\nConnection: close\r\n\r\n")
        assert half[-1].recv(4096).startswith(b"HTTP/1.1 200")
        for connection in half:
            connection.close()
    assert len([each for each in caplog.records if "closed" in each.getMessage()]) == 1


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET /a-token/api/meta HTTP/1.1\r\nHost: local",
        b"POST /wrong/runs/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST /a-token/runs/upload?name=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
        b"GET /a-token/api/meta HTTP/1.1\r\nHost: localhost\r\n\r\nGET /a-token/api/me",
    ],
    ids=["nothing", "half a head", "half a body without the token", "half a body", "half a second request"],
)
def test_a_request_that_does_not_come_is_not_waited_for(app: Application, half: bytes) -> None:
    with served(app, Connections(head_s=0.2, body_s=0.2)) as port, asked(port, half) as connection:
        begun = time.monotonic()
        while connection.recv(4096):
            pass
        assert time.monotonic() - begun < FOREVER_S / 2


def test_connections_with_the_token_are_counted_and_refused_with_a_sentence(app: Application) -> None:
    head = f"GET /{TOKEN}/api/meta HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with served(app, Connections(most=2)) as port:
        kept = [asked(port, head) for _ in range(2)]
        assert [each.recv(12) for each in kept] == [b"HTTP/1.1 200"] * 2
        with asked(port, head) as third:
            assert third.recv(12) == b"HTTP/1.1 503"
        kept.pop().close()

        def again() -> bool:
            with asked(port, head) as another:
                return another.recv(12) == b"HTTP/1.1 200"

        wait_until(again)
        kept.pop().close()


def test_the_browser_is_started_with_an_address_that_is_good_once(runs: Path) -> None:
    browser = runs / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen('started', 'w').write(sys.argv[1] + '\\n')\n")
    browser.chmod(0o755)
    env = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":9", "STROBE_CACHE": str(runs / "cache")}
    command = [STROBE, "view", "runs", "--until-eof"]
    pipe, errors = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, cwd=runs, env=env, stdin=pipe, stdout=pipe, stderr=errors, text=True) as server:
        assert server.stdout is not None
        printed = server.stdout.readline().strip()
        wait_until(lambda: (runs / "started").is_file() and (runs / "started").read_text().endswith("\n"))
        launch = (runs / "started").read_text().strip()
        token = urlsplit(printed).path.strip("/")
        assert token not in launch
        arguments = Path(f"/proc/{server.pid}/cmdline")
        assert not arguments.exists() or token not in arguments.read_text()
        with urllib.request.urlopen(launch, timeout=FOREVER_S) as page:
            assert page.url == printed  # the address that people may keep
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(launch, timeout=FOREVER_S)
        with urllib.request.urlopen(printed, timeout=FOREVER_S) as page:
            assert page.status == 200
        assert server.stdin is not None
        server.stdin.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_cannot_use_the_address_of_the_browser(app: Application) -> None:
    with served(app) as port:
        launch = f"http://127.0.0.1:{port}/{app.launch.text}/"
        encoding = "'x'.encode('idna')"  # another user may not be able to load it
        ask = f"import os, urllib.request; {encoding}; os.setuid(65534); urllib.request.urlopen('{launch}')"
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
        assert "HTTP Error 404" in done.stderr
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=FOREVER_S)
        connection.request("GET", f"/proxy/9/{app.launch.text}")  # this user can, also through a proxy
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Location"]) == (303, f"{TOKEN}/")
        connection.close()


def test_the_address_of_the_browser_is_good_for_a_minute() -> None:
    assert not LaunchToken(good_s=0).use(None, None)
    used = LaunchToken()
    assert (used.use(None, None), used.use(None, None)) == (True, False)


def test_what_the_page_asks_first_is_answered_once_and_before_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = [HandMadeProcess({"main": [span("MPI_Send", 0, 1000 + n)]}, rank=n, pid=n + 1) for n in range(3)]
    trace = make_trace(*ranks)
    app = Application([Source(tmp_path, lambda: trace)], token=TOKEN, static=tmp_path)
    begun, done, questions = threading.Event(), threading.Event(), list[object]()
    sums = routes.ROUTES["window/bars"]

    def slow(context: TraceContext, **question: Any) -> object:
        questions.append(question)
        begun.set()
        assert done.wait(FOREVER_S)
        return sums.answer(context, **question)

    monkeypatch.setitem(routes.ROUTES, "window/bars", dataclasses.replace(sums, answer=slow))
    question = f"GET /{TOKEN}/api/window/bars?start_ns=0&end_ns=1002&of=ranks&limit=0 HTTP/1.1\r\nHost: localhost\r\n"
    with served(app) as port, ThreadPoolExecutor(1) as executor:
        warmed = executor.submit(asyncio.run, app.warm())
        assert begun.wait(FOREVER_S)
        early = asked(port, f"{question}Accept-Encoding: gzip\r\n\r\n".encode())
        done.set()
        warmed.result(FOREVER_S)
        late = asked(port, f"{question}Accept-Encoding: gzip\r\n\r\n".encode())
        for each in (early, late):
            assert b'"processes": 3' in b"".join(iter(lambda from_=each: from_.recv(1 << 16), b"")), "an answer"
    assert questions == [{"start_ns": 0, "end_ns": 1002, "by": "group", "of": "ranks", "clusters": 0, "limit": 0}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, and one that is broken."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        (folder / f"{name}.py").write_text(f"def {name}(): pass\n{name}()\n")
        subprocess.run(
            [STROBE, "run", "--quiet", "-o", f"runs/{name}.strobe", f"{name}.py"], cwd=folder, check=True, timeout=120
        )
    (folder / "runs/broken.strobe").mkdir()
    return folder


@contextmanager
def view(folder: Path, *words: str) -> Iterator[tuple[str, list[str]]]:
    """The address that `strobe view` prints, and what it says beside it."""
    command = [STROBE, "view", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={"PATH": "/usr/bin:/bin"}
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            address = server.stdout.readline().strip()
            said = []
            while "Ctrl-C" not in "".join(said):
                line = server.stderr.readline()
                assert line, "it ended"
                said.append(line)
            yield address, said
        finally:
            server.terminate()


def test_strobe_view_shows_a_folder_of_runs_from_afar(runs: Path) -> None:
    with view(runs, "runs", "--remote", "--prefix", "/node/n17/{port}") as (address, said):
        port = address.split("/")[2].split(":")[1]
        assert f"/node/n17/{port}/" in address
        assert f"ssh -N -L {port}:127.0.0.1:{port} " in said[0]
        listed = urllib.request.urlopen(f"{address}runs/list", timeout=FOREVER_S).read().decode()
        assert {each["name"] for each in json.loads(listed)} == {"first", "second", "broken"}
        assert "holds no recorded process" in listed
        meta = urllib.request.urlopen(f"{address}t/second/api/meta", timeout=FOREVER_S).read()
        assert b"second.py" in meta


def test_strobe_view_has_answers_before_it_is_asked_and_sends_small_ones_at_once(runs: Path) -> None:
    with view(runs, "runs/first.strobe") as (address, _):
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port or 0, timeout=FOREVER_S)

        def answer(name: str) -> http.client.HTTPResponse:
            connection.request("GET", f"{parts.path}api/{name}", headers={"Accept-Encoding": "gzip"})
            got = connection.getresponse()
            got.read()
            return got

        # Nobody has asked for it before: the server has. An answer that is made takes more than 0.1 ms.
        assert "answer;dur=0.0" in answer("processes").headers["Server-Timing"]
        took = []
        for _ in range(20):
            begun = time.monotonic()
            answer("meta")
            took.append(time.monotonic() - begun)
        # Head and body of a small answer are two packets: Linux confirms the first one after 40 ms.
        assert min(took[1:]) < 0.03


def test_a_run_that_is_opened_anew_leaves_nothing_behind(runs: Path) -> None:
    """While it is being recorded that is once a second; nobody collects garbage so often."""
    library = Library(sources([str(runs / "runs/first.strobe")]))
    name = library.names[0]
    gc.disable()
    try:
        context = library.open(name)
        assert context.summary_json
        assert context.trace.pyramid.has_tiles(of_rows=False) in (True, False)
        assert context.trace.rows
        before = weakref.ref(context.trace)
        context = library.open(name)
        assert before() is None
        assert context.trace.rows
    finally:
        gc.enable()


def test_what_is_young_stays_young_when_a_run_is_opened_anew(runs: Path) -> None:
    """Else garbage of each second would pile up where the collector hardly ever looks."""
    library = Library(sources([str(runs / "runs/first.strobe")]))
    library.open(library.names[0])
    circle = Circle()
    circle.itself, gone = circle, weakref.ref(circle)
    del circle
    library.open(library.names[0])
    gc.collect(1)
    assert gone() is None


def test_answers_of_earlier_openings_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.server.trace_context.TraceContext.outdated", property(lambda _: True))
    versions = itertools.count()
    monkeypatch.setattr("strobe.server.trace_context.TraceContext.version", property(lambda _: str(next(versions))))
    source = Source(tmp_path, lambda: make_trace({"main": [span("step", 0, 1000)]}))
    with served(Application([source], token=TOKEN, static=tmp_path)) as port:
        for _ in range(4):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/api/meta", timeout=FOREVER_S) as answer:
                assert answer.status == 200
        bodies = [each.data for each in gc.get_objects() if type(each).__name__ == "_Packed"]
        assert sum(tmp_path.name.encode() in each for each in bodies) <= 1, "that of the newest one"


def test_names_of_runs_are_shown_once_and_a_wrong_one_beside_them(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    found = sources(["runs", "runs/first.strobe", "nothing"])
    assert sorted(each.path.name for each in found) == ["broken.strobe", "first.strobe", "nothing", "second.strobe"]
    with pytest.raises(Exception, match="no such trace: 'nothing'"):
        sources(["nothing"])
    (runs / "runs/other.folded").write_text("a;b 3\n")
    assert [each.path.name for each in sources(["runs"])] == ["runs"], "a folder with other tools' files is one run"
    (runs / "runs/other.folded").unlink()


def test_the_ssh_line_leads_through_the_login_node_of_a_batch_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda: "n17.cluster")
    monkeypatch.setattr("getpass.getuser", lambda: "me")
    monkeypatch.delenv("SLURM_SUBMIT_HOST", raising=False)
    monkeypatch.delenv("PBS_O_HOST", raising=False)
    assert ssh_line("127.0.0.1", 8888) == "ssh -N -L 8888:127.0.0.1:8888 me@n17.cluster"
    assert ssh_line("::1", 8888) == "ssh -N -L 8888:[::1]:8888 me@n17.cluster"
    monkeypatch.setenv("SLURM_SUBMIT_HOST", "login1")
    assert ssh_line("127.0.0.1", 8888) == "ssh -N -L 8888:127.0.0.1:8888 -J me@login1 me@n17.cluster"
