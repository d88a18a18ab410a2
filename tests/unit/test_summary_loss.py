"""What the summary states of a trace of which nothing is left."""

import pytest

from strobe.model.losses import loss_sentences
from strobe.present.summary import summarise
from tests.unit.hand_made import HandMadeProcess, make_trace


@pytest.mark.parametrize(
    ("quality", "verdict"),
    [
        ({"spans_lost": 1516}, "nothing of what was recorded is left: see what is lost"),
        ({}, "nothing was recorded: the program ran neither a Python function nor an operator"),
    ],
)
def test_what_is_lost_is_not_called_unrecorded(quality: dict[str, int], verdict: str) -> None:
    assert bool(loss_sentences(quality)) == bool(quality)
    assert summarise(make_trace(HandMadeProcess({"main": []}, quality=quality))).verdict.text == verdict
