"""Questions to a trace, one a file: `ANALYSIS = Analysis(...)` whose `run(trace, **options)` returns a Table."""
