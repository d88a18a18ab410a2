"""Answers of the analyses, one a file of the folder of its subject: `run(trace, **options)` returns a Table."""
