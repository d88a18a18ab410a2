"""Which loop level is the step."""
