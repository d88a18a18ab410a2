"""All tables of a trace as files."""
