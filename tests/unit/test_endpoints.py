"""Descriptions of questions: what they let through, what they refuse, and that OpenAPI says the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import strobe
from strobe import registry
from strobe.model.plugins import Analysis
from strobe.server.routing.bodies import Body
from strobe.server.routing.endpoints import Endpoint, highest, parameter
from strobe.server.routing.routes import ROUTES
from strobe.tables.table import arrow_schema
from tests.unit.hand_made import span
from tests.unit.test_server import Page, page_of


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """Two threads: locations 0 and 1."""
    return page_of({"main": [span("step", 0, 1000)], "helper": [span("copy", 10, 20)]}, folder=tmp_path)


@pytest.fixture
def openapi(page: Page) -> dict[str, Any]:
    return cast("dict[str, Any]", page.json("openapi.json"))


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("meta?depth=3", "'meta' has no parameter 'depth'"),
        ("stack?location=0&location=0&level=1&tile=0", "'location' is given twice"),
        ("stack?location=0&level=1", "'stack' needs 'tile'"),
        ("stack?location=2&level=1&tile=0", "location: '2' is not a whole number from 0 to 1"),
        ("stack?location=1e0&level=1&tile=0", "location: '1e0' is not a whole number"),
        ("stack?location=%D9%A1&level=1&tile=0", "is not a whole number"),  # an Arabic 1, which Python reads as one
        ("stack?location=&level=1&tile=0", "location: '' is not a whole number"),
        (f"stack?location={'9' * 5000}&level=1&tile=0", "is not a whole number"),
        ("stack?location=0&level=1&tile=9007199254740992", "does not exist"),
        ("cells?locations=0,1,&level=1&tile=0", "locations: '' is not a whole number"),
        (f"cells?locations={','.join(['0'] * 2000)}&level=1&tile=0", "2000 numbers at once; at most 1024"),
        ("steps?limit=0", "limit: '0' is not a whole number from 1 to 4000"),
        (f"search/spans?text={'x' * 1001}", "more than 1000 characters"),
        ("table/operators?by=colour", "by: 'colour' is not one of"),
        ("table/gpu_trace?limit=many", "limit: 'many' is not a whole number"),
        ("table/profile?min_share=nan", "min_share: 'nan' is not a number"),
        ("table/operators?as=", "as: '' is not one of csv, json"),
        ("table/copies?by=time&points=9007199254740992", "points are too many"),
        ("tree?start_ns=5", "needs both start_ns and end_ns"),
        ("window?start_ns=5&end_ns=5", "ends before it begins"),
    ],
)
def test_what_is_beyond_a_description_is_refused_with_a_sentence(page: Page, question: str, sentence: str) -> None:
    answer = page.get(question)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
    assert len(answer.json()["error"]) < 300, "it does not send back what is too long"


@pytest.mark.parametrize("name", ["nothing", "table/nothing", "table/%2e%2e/meta", "table", "tree/", "openapi.json/x"])
def test_a_question_that_there_is_not_is_told_in_a_sentence(page: Page, name: str) -> None:
    answer = page.get(name)
    assert answer.status_code == 404
    assert "unknown route" in answer.json()["error"]


def test_every_function_that_is_described_as_a_route_is_one() -> None:
    folder = Path(strobe.__file__).parent
    described = [
        ".".join(("strobe", *path.relative_to(folder).with_suffix("").parts))
        for path in (folder / "server").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("@route(")
    ]
    assert sorted(described) == sorted(endpoint.answer.__module__ for endpoint in ROUTES.values())


def test_an_answer_that_is_larger_than_its_bound_is_not_sent() -> None:
    endpoint = Endpoint("large", lambda _: Body(b"x" * 101, "text/plain"), "", (), ("text/plain",), 100, slow=False)
    with pytest.raises(Exception, match="would have 101 bytes; the limit is 100"):
        endpoint.body(cast(Any, None), {})


def test_numbers_of_things_are_bounded_by_the_trace() -> None:
    location = parameter("location", "", of="location")
    facts = cast(Any, type("Facts", (), {"span_counts": [1, 2, 3]}))
    assert location.read("2", highest(location, facts)) == 2
    with pytest.raises(ValueError, match="from 0 to 2"):
        location.read("3", highest(location, facts))


def test_openapi_names_every_question_with_its_parameters(openapi: dict[str, Any]) -> None:
    assert set(openapi["paths"]) == {f"/{name}" for name in ROUTES} | {
        f"/table/{name}" for name in registry.names("analyses")
    }
    asked = {each["name"]: each for each in openapi["paths"]["/cells"]["get"]["parameters"]}
    assert set(asked) == {"locations", "level", "tile"}
    assert asked["locations"]["schema"]["items"] == {"type": "integer", "minimum": 0, "maximum": 1}
    assert asked["locations"]["explode"] is False
    kernels = registry.load("analyses", "kernels")
    assert isinstance(kernels, Analysis)
    by = openapi["paths"]["/table/kernels"]["get"]["parameters"][0]
    assert by["name"] == "by"
    assert tuple(by["schema"]["enum"]) == kernels.options[0].choices


def test_openapi_needs_the_token(page: Page) -> None:
    answer = page.request("GET", "/api/openapi.json")
    assert answer.status_code == 404
    assert "paths" not in answer.text


def test_defaults_of_analyses_are_what_they_would_be_without_a_server(page: Page) -> None:
    options = json.loads(page.table("table/operators").schema.metadata[b"options"])
    told = {option["name"]: option["value"] for option in options}
    assert (told["by"], told["step"], told["step_class"]) == ("name", "auto", "None")


@pytest.mark.parametrize(
    "question",
    [
        "processes",
        "locations",
        "rows/values?of=group.host&start_ns=0&end_ns=1000",
        "stack?location=0&level=0&tile=0",
        "series",
        "readings?start_ns=0&end_ns=1000&width=10",
        "steps",
        "window?start_ns=0&end_ns=1000",
        "window/profile?start_ns=0&end_ns=1000",
        "window/messages?start_ns=0&end_ns=1000",
        "window/spans?locations=0,1&start_ns=0&end_ns=1000",
        "over_steps?analysis=kernels&by=name&rows=0",
        "ranks/waits?by=pair",
        "ranks/steps?value=wait&start_ns=0&end_ns=1000",
        "tree",
        "tree/spans?call_path=0",
        "memory_tree",
        "search/spans?text=step",
        "search/spans?text=nothing_is_called_so",
        "search/regions?text=step",
        "search/density?text=step&bins=5",
        "behind?name=step",
        "behind?name=nothing_is_called_so",
    ],
)
def test_a_table_has_the_columns_of_its_description(page: Page, question: str) -> None:
    """The page's types are made from these descriptions."""
    described = arrow_schema(ROUTES[question.partition("?")[0]].columns)
    answered = page.table(question).schema

    def plain(kind: pa.DataType) -> pa.DataType:
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    assert {field.name: plain(field.type) for field in answered} == {field.name: field.type for field in described}


def test_every_table_has_such_a_test() -> None:
    cases = {
        str(case).partition("?")[0] for case in test_a_table_has_the_columns_of_its_description.pytestmark[0].args[1]
    }
    assert cases == {name for name, endpoint in ROUTES.items() if endpoint.columns}


def test_an_answer_may_hold_dataclasses() -> None:
    @dataclass
    class Fact:
        name: str

    endpoint = Endpoint("facts", lambda _: {"facts": [Fact("one")]}, "", (), ("application/json",), 100, slow=False)
    assert json.loads(endpoint.body(cast(Any, None), {}).data) == {"facts": [{"name": "one"}]}
