"""Columns: sets of equal rows, against numpy's own sets of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strobe.tables.column_arrays import alike

SMALL, WIDE = st.integers(-3, 3), st.integers(-(2**62), 2**62)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL)) | st.lists(st.tuples(WIDE, SMALL, WIDE), max_size=9))
def test_sets_of_equal_rows_are_those_of_numpy(rows: list[tuple[int, int, int]]) -> None:
    whole = np.array(rows, dtype=np.int64).reshape(-1, 3)
    _, expected_first, expected = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    first, which = alike([*whole.T])
    assert first.tolist() == expected_first.tolist()
    assert which.tolist() == expected.reshape(-1).tolist()
