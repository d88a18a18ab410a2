"""Reading traces: from bytes on disk to tables."""
