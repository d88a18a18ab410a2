"""The parent of the measured program: starts it, makes the trace folder; ranks share one trace, nodes one clock."""
