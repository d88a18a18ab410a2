"""`strobe attach`: the recorder in a program that was started without it."""
