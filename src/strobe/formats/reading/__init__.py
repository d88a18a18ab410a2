"""What importers share: files as bytes and tables, and one process of an import filled by columns."""
