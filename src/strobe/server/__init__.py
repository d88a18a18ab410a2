"""The service behind `strobe view`: answers bounded by the screen, read-only, from one trace, over HTTP."""
