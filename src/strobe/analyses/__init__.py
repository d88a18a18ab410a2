"""Questions to a trace, one a file of the folder of its subject: `ANALYSIS = Analysis(...)`; `answers` compute."""
