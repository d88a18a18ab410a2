"""Descriptions of questions: what they let through, what they refuse, and that OpenAPI says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from strobe import registry
from strobe.model.plugins import Analysis
from strobe.server.answers import ROUTES
from strobe.server.endpoints import Endpoint, Parameter
from strobe.server.tables import Body
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
        ("stack?location=2&level=1&tile=0", "'location=2' is no number from 0 to 1"),
        ("stack?location=1e0&level=1&tile=0", "'location=1e0' is no number"),
        ("stack?location=%D9%A1&level=1&tile=0", "is no number"),  # an Arabic 1, which Python reads as one
        ("stack?location=&level=1&tile=0", "'location=' is no number"),
        (f"stack?location={'9' * 5000}&level=1&tile=0", "is no number"),
        ("stack?location=0&level=1&tile=9007199254740992", "there is no tile"),
        ("cells?locations=0,1,&level=1&tile=0", "'locations=' is no number"),
        (f"cells?locations={','.join(['0'] * 2000)}&level=1&tile=0", "2000 locations at once"),
        ("steps?limit=0", "'limit=0' is no number from 1 to 4000"),
        (f"search/spans?text={'x' * 1001}", "more than 1000 characters"),
        ("table/operators?by=colour", "'by=colour' is not one of"),
        ("table/gpu_trace?limit=many", "'limit=many' is no number"),
        ("table/profile?min_share=nan", "'min_share=nan' is no number"),
        ("table/operators?as=", "'as=' is not one of csv, json"),
        ("table/copies?by=time&points=9007199254740992", "points are too many"),
        ("tree?start_ns=5", "a start_ns and an end_ns"),
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
    assert "there is no question" in answer.json()["error"]


def test_an_answer_that_is_larger_than_its_bound_is_not_sent() -> None:
    endpoint = Endpoint("large", lambda _: Body(b"x" * 101, "text/plain"), "", (), ("text/plain",), 100, slow=False)
    with pytest.raises(Exception, match="would have 101 bytes, and 100 are the most"):
        endpoint.body(cast(Any, None), {})


def test_numbers_of_things_are_bounded_by_the_trace() -> None:
    parameter = Parameter("location", "", of="location")
    facts = cast(Any, type("Facts", (), {"span_counts": [1, 2, 3]}))
    assert parameter.read("2", facts) == 2
    with pytest.raises(Exception, match="from 0 to 2"):
        parameter.read("3", facts)


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
