"""Adapters: one file per source of events, each with an `ADAPTER`. What two share lies in `record/`."""
