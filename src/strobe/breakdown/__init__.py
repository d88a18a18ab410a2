"""Where the time of a step goes: spans, phases, kinds of work, the data pipeline."""
