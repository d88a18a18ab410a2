"""The loops of a process as a tree, and its event flow graph."""
