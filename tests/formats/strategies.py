"""Hypothesis strategies of files of other tools: sound ones, damaged as their format is built (see `mutations`)."""

from collections.abc import Sequence
from typing import cast

from hypothesis import strategies as st

from tests.formats.mutations import mutate


@st.composite
def damaged(draw: st.DrawFn, files: Sequence[bytes]) -> bytes:
    """One of some files, with one to four changes."""
    data = draw(st.sampled_from(files))
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    return mutate(data, random)


_NAMES = st.sampled_from(
    ["traceEvents", "ph", "ts", "dur", "pid", "tid", "name", "cat", "args", "id", "baseTimeNanoseconds"]
)
_CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(list("XBEbeCMistf"))
)


def trace_json() -> st.SearchStrategy[object]:
    """JSON documents with the keys of trace events, and anything at all as their values."""
    nested = st.recursive(
        _CELLS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=6),
        max_leaves=20,
    )
    return cast("st.SearchStrategy[object]", st.fixed_dictionaries({"traceEvents": st.lists(nested, max_size=5)}))
