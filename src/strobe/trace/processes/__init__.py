"""The processes of a run: the reader of one, a part of one, and all of them in order."""
