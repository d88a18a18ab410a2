"""How the steps of one process are found, cut, split into parts, and classified."""
