"""Addresses of the view's server: token, names of hosts, prefixes, several traces, and requests that mean harm."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from strobe.api.trace import Trace
from strobe.errors import TraceError
from strobe.server.http.app import Application
from strobe.server.http.serve import address_of
from strobe.server.http.trace_library import Source
from strobe.server.http.work_queue import Limits
from strobe.server.routing.endpoints import MOST_QUERY
from tests.unit.hand_made import MS, make_trace, span, train_steps
from tests.unit.test_server import TOKEN, Page

pytestmark = pytest.mark.every_python

SECRET = "nobody may read this"
PAGE = '<title>strobe</title><div id="app"></div>'


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A page with one asset, and a secret beside it."""
    (tmp_path / "page/assets").mkdir(parents=True)
    (tmp_path / "page/index.html").write_text(PAGE)
    (tmp_path / "page/assets/index-1.js").write_text("script")
    (tmp_path / "page/secret").write_text(SECRET)
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path / "page"


def source(tmp_path: Path, name: str, region: str = "step") -> Source:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "job.json").write_text(json.dumps({"command": ["python", f"{region}.py"], "host": "n17"}))
    (folder / "process-1.blocks").write_text(SECRET)
    return Source(folder, lambda: make_trace({"main": [span(region, 0, 1000)]}))


@pytest.fixture
def one(tmp_path: Path, static: Path) -> Page:
    return Page(Application([source(tmp_path, "a.strobe")], token=TOKEN, static=static, hosts=frozenset({"node17"})))


@pytest.fixture
def several(tmp_path: Path, static: Path) -> Page:
    def broken() -> Trace:
        raise TraceError("'c.strobe' holds no recorded process", do="Record one.")

    (tmp_path / "c.strobe").mkdir()
    (tmp_path / "c.strobe/job.json").write_text("{broken")
    sources = [
        source(tmp_path, "a.strobe", "first"),
        source(tmp_path, "other/a.strobe", "second"),
        source(tmp_path, "ä & <b>.strobe", "third"),
        Source(tmp_path / "c.strobe", broken),
    ]
    return Page(Application(sources, token=TOKEN, static=static))


def sentence(page: Page, method: str, address: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status and sentence of a refusal; that it is one sentence in JSON, and tells nothing else."""
    answer = page.request(method, address, headers)
    told = answer.json()
    assert set(told) == {"error", "do"}
    assert "\n" not in told["error"]
    assert TOKEN not in answer.text
    assert SECRET not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.status_code, told["error"]


@pytest.mark.parametrize(
    "token", ["", "a-tokem", "A-TOKEN", "a-token2", "a-toke", "%00a-token", "a-token%00", "ä-token", "..", "*"]
)
def test_without_the_token_there_is_nothing(one: Page, token: str) -> None:
    for behind in ("/", "/api/meta", "/api/openapi.json", "/assets/index-1.js"):
        assert sentence(one, "GET", f"/{token}{behind}") == (404, "this address has no token, or a wrong one")


@pytest.mark.parametrize("prefix", ["", "/user/me/proxy/8888", "/rnode/n17.cluster/40123", "/%C3%A4/b"])
def test_what_a_proxy_puts_before_the_token_does_not_matter(one: Page, prefix: str) -> None:
    assert one.request("GET", f"{prefix}/{TOKEN}/").text == PAGE
    assert one.request("GET", f"{prefix}/{TOKEN}/api/meta").json()["name"] == "a.strobe"
    assert one.request("GET", f"{prefix}/{TOKEN}/assets/index-1.js").text == "script"
    without_slash = one.request("GET", f"{prefix}/{TOKEN}")
    assert (without_slash.status_code, without_slash.headers["location"]) == (308, f"{TOKEN}/")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:8080", "10.2.3.4", "node17:1", "Node17."]
)
def test_it_answers_to_bare_addresses_and_its_own_names(one: Page, host: str) -> None:
    assert one.get("meta", {"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "node170", "x" * 5000]
)
def test_a_name_that_points_here_without_being_ours_is_refused(one: Page, host: str) -> None:
    status, why = sentence(one, "GET", f"/{TOKEN}/api/meta", {"Host": host})
    assert status == 421
    assert why.startswith("this server is not '")
    assert len(why) < 100


HOSTILE = [
    ("GET", "/api/../secret", 404),
    ("GET", "/%2e%2e/secret", 404),
    ("GET", "/assets/../secret", 404),
    ("GET", "/assets/%2e%2e%2fsecret", 404),
    ("GET", "/assets/..%5csecret", 404),
    ("GET", "/assets/%2fetc%2fpasswd", 404),
    ("GET", "/assets/index-1.js%00", 404),
    ("GET", "/assets/", 404),
    ("GET", "/assets//secret", 404),
    ("GET", "/api/process-1.blocks", 404),
    ("GET", "/process-1.blocks", 404),
    ("GET", "/api/", 404),
    ("GET", "/api/meta%00", 404),
    ("GET", "/api/table/..%2f..%2fsecret", 404),
    ("GET", "/api/table/__init__", 404),
    ("GET", "/t/b/api/meta", 404),
    ("GET", "/runs/list/b", 404),
    ("POST", "/api/meta", 405),
    ("GET", "/runs/upload", 404),
    ("GET", "/" + "x/" * 3000, 414),
    ("GET", "/api/search/spans?text=" + "x" * 40_000, 414),
    ("GET", "/api/meta?" + "a=1&" * (MOST_QUERY // 5), 400),
    ("GET", "/api/meta?%00=%00", 400),
    ("GET", "/api/stack?location=0&level=0&tile=%00", 400),
    ("GET", "/api/stack?location=0&level=0&tile=" + "9" * 10_000, 400),
    ("GET", "/api/stack?location=0&level=0&tile=%F0%9F%92%A5", 400),
    ("GET", "/api/stack?location=0&level=0&tile=%FF%FE", 400),
    ("GET", "/api/stack?location=0&level=43&tile=9007199254740991", 400),
    ("GET", "/api/span?location=0&start_ns=0&end_ns=99999999999999999999", 400),
    ("GET", "/api/tree/spans?region=4294967295", 400),
    ("GET", "/api/tree?level=%ED%A0%80", 400),
    ("GET", "/api/tree?step=;drop%20table", 400),
    ("GET", "/api/table/critical_path?step=%00", 400),
    ("POST", "/api/meta", 405),
    ("DELETE", "/", 405),
    ("OPTIONS", "/api/meta", 405),
    ("PROPFIND", "/assets/index-1.js", 405),
]


@pytest.mark.parametrize(("method", "address", "status"), HOSTILE, ids=[f"{m} {a[:40]}" for m, a, _ in HOSTILE])
def test_a_request_that_means_harm_is_refused_in_a_sentence(one: Page, method: str, address: str, status: int) -> None:
    answered, why = sentence(one, method, f"/{TOKEN}{address}")
    assert answered == status
    assert len(why) < 300


def test_a_failure_of_ours_is_a_sentence_and_no_traceback(one: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.server.pictures.location_cells.tile_window", lambda *_: 1 / 0)
    status, why = sentence(one, "GET", f"/{TOKEN}/api/cells?locations=0&level=0&tile=0")
    assert (status, why) == (500, "the server could not answer (ZeroDivisionError)")


def test_what_takes_too_long_is_refused_in_a_sentence(tmp_path: Path, static: Path) -> None:
    page = Page(Application([source(tmp_path, "a.strobe")], token=TOKEN, static=static, limits=Limits(slow_s=0)))
    assert sentence(page, "GET", f"/{TOKEN}/api/tree")[0] == 504
    assert page.get("cells?locations=0&level=0&tile=0").status_code == 200


def test_several_traces_have_a_list_and_an_address_each(several: Page) -> None:
    assert several.request("GET", f"/{TOKEN}/").text == '<title>strobe</title><div id="app" data-root="./"></div>'
    assert several.request("GET", f"/{TOKEN}/assets/index-1.js").text == "script"
    assert 'data-root="../"' in several.request("GET", f"/{TOKEN}/runs/").text
    runs = several.request("GET", f"/{TOKEN}/runs/list").json()
    assert [(run["name"], run["command"], run["host"]) for run in runs[:3]] == [
        ("a", "python first.py", "n17"),
        ("a-2", "python second.py", "n17"),
        ("ä & <b>", "python third.py", "n17"),
    ]
    assert runs[3]["error"] == "holds no recorded process"
    assert all("summary" not in run for run in runs)
    links = [f"t/{quote(run['name'])}/" for run in runs]
    programs = []
    for link in links[:3]:
        assert several.request("GET", f"/{TOKEN}/{link}").text == PAGE
        assert several.request("GET", f"/{TOKEN}/{link}assets/index-1.js").text == "script"
        spans = several.request("GET", f"/{TOKEN}/{link}api/search/regions?text=-nothing").content
        programs += [name for name in (b"first", b"second", b"third") if name in spans]
    assert programs == [b"first", b"second", b"third"]
    assert several.request("GET", f"/{TOKEN}/runs/names").json() == ["a", "a-2", "ä & <b>", "c"]
    without_slash = several.request("GET", f"/{TOKEN}/t/a")
    assert (without_slash.status_code, without_slash.headers["location"]) == (308, "a/")


def test_pictures_of_one_trace_are_not_kept_for_another(several: Page) -> None:
    cells = [several.request("GET", f"/{TOKEN}/t/{n}/api/cells?locations=0&level=0&tile=0") for n in ("a", "a-2", "a")]
    assert [b"first" in each.content for each in cells] == [True, False, True]


def test_a_broken_trace_says_so_and_the_others_are_shown(several: Page) -> None:
    page = several.request("GET", f"/{TOKEN}/t/c/")
    assert page.status_code == 422
    assert "holds no recorded process" in page.text
    assert sentence(several, "GET", f"/{TOKEN}/t/c/api/meta")[1] == "'c.strobe' holds no recorded process"
    assert several.request("GET", f"/{TOKEN}/t/a/").status_code == 200


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e%2fa", "a%00", "a.strobe", ""])
def test_a_trace_that_is_not_shown_is_not_there(several: Page, name: str) -> None:
    assert sentence(several, "GET", f"/{TOKEN}/t/{name}/api/meta")[0] == 404


def test_only_so_many_traces_are_open_at_once(tmp_path: Path, static: Path) -> None:
    opened: list[str] = []

    def counted(name: str) -> Source:
        made = source(tmp_path, f"{name}.strobe")

        def opening() -> Trace:
            opened.append(name)
            return made.open()

        return Source(made.path, opening)

    names = "abcdefghi"
    page = Page(Application([counted(name) for name in names], token=TOKEN, static=static))
    for name in (*names, "i", "a"):
        assert page.request("GET", f"/{TOKEN}/t/{name}/api/meta").status_code == 200
    assert opened == [*names, "a"], "the first was closed for the ninth"


@pytest.mark.parametrize(
    ("host", "prefix", "address"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:80"),
        ("::1", "", "http://[::1]:80"),
        ("n17", "/rnode/n17/{port}/", "http://n17:80/rnode/n17/80"),
        ("127.0.0.1", "https://hub.example/user/me/proxy/{port}", "https://hub.example/user/me/proxy/80"),
    ],
)
def test_the_printed_address_has_the_proxys_prefix(host: str, prefix: str, address: str) -> None:
    assert address_of(host, 80, prefix) == address


def test_a_run_in_the_list_is_summed_up_when_asked(tmp_path: Path, static: Path) -> None:
    sources = [Source(tmp_path / "a.strobe", lambda: make_trace({"main": train_steps(60)}))]
    page = Page(Application([*sources, source(tmp_path, "b.strobe")], token=TOKEN, static=static))
    (tmp_path / "a.strobe").mkdir()
    (tmp_path / "a.strobe/process-1.blocks").write_text("")
    row = page.request("GET", f"/{TOKEN}/runs/list/a").json()
    expected = page.request("GET", f"/{TOKEN}/t/a/api/summary").json()
    assert row["summary"]["verdict"] == expected["verdict"]["text"]
    assert row["summary"]["step_ns"] == expected["step"]["median_ns"] == pytest.approx(11 * MS, rel=0.1)
    assert len(row["summary"]["strip_ns"]) == 48  # of 60 steps
    assert row["summary"]["state"] == ["complete"]


def test_a_file_that_is_sent_is_imported_and_shown(one: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))
    body = b"main;solve;dot 1042\nmain;read 50\n"
    for name, expected in (("stacks.txt", "stacks.txt"), ("../again.txt", "again.txt"), ("stacks.txt", "stacks.txt")):
        sent = one.request("POST", f"/{TOKEN}/runs/upload?name={name}", body=body)
        assert (sent.status_code, sent.json()) == (200, {"name": expected})
    assert [run["name"] for run in one.request("GET", f"/{TOKEN}/runs/list").json()] == ["a", "stacks.txt", "again.txt"]
    summary = one.request("GET", f"/{TOKEN}/t/stacks.txt/api/summary").json()
    assert "of all samples are in dot itself" in summary["verdict"]["text"]
    assert not list((tmp_path / "cache/uploads").iterdir())
    refused = one.request("POST", f"/{TOKEN}/runs/upload?name=x", body=b"\x7fELF no trace")
    assert refused.status_code == 400
    assert "a program" in refused.text
    monkeypatch.setattr("strobe.server.http.app.MOST_UPLOAD", 10)
    assert one.request("POST", f"/{TOKEN}/runs/upload?name=x", body=body).status_code == 413
    assert len(one.request("GET", f"/{TOKEN}/runs/list").json()) == 3
