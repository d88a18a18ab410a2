"""The verbs of the command line: a file here is one, by being there."""
