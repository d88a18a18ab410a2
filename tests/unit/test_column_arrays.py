"""Columns: sets of equal rows, against numpy's own sets of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strobe.tables.column_arrays import alike, combined

SMALL, WIDE = st.integers(-3, 3), st.integers(-(2**62), 2**62)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL)) | st.lists(st.tuples(WIDE, SMALL, WIDE), max_size=9))
def test_sets_of_equal_rows_are_those_of_numpy(rows: list[tuple[int, int, int]]) -> None:
    whole = np.array(rows, dtype=np.int64).reshape(-1, 3)
    _, expected_first, expected = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    first, which = alike([*whole.T])
    assert first.tolist() == expected_first.tolist()
    assert which.tolist() == expected.reshape(-1).tolist()


@given(st.lists(st.tuples(SMALL, SMALL, WIDE, WIDE, SMALL)))
def test_sets_of_rows_become_one_row_each(rows: list[tuple[int, int, int, int, int]]) -> None:
    expected: dict[tuple[int, int], tuple[int, int, int]] = {}
    for *key, least, most, added in rows:
        before = expected.get((key[0], key[1]), (2**63 - 1, -(2**63), 0))
        expected[key[0], key[1]] = min(before[0], least), max(before[1], most), before[2] + added
    columns = dict(zip("abcde", np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy(), strict=True))
    found, group = combined(columns, ("a", "b"), {"c": np.minimum, "d": np.maximum, "e": np.add})
    made = zip(*(found[name].tolist() for name in "abcde"), strict=True)
    assert {(a, b): rest for a, b, *rest in made} == {key: [*sums] for key, sums in expected.items()}
    assert [(found["a"][at], found["b"][at]) for at in group] == [(a, b) for a, b, *_ in rows]
