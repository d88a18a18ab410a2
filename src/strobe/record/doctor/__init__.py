"""`strobe doctor`: what can be recorded on this machine."""
