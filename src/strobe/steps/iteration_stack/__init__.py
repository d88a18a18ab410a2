"""Every step as a row, every position of the usual path as a column."""
