"""The command line: `main` and one file per verb that is not an analysis (`VERB = Verb(...)`)."""
