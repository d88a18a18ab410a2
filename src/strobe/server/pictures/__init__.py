"""Pictures as bytes: a byte per pixel, in tiles that are aligned to the trace's zero."""
