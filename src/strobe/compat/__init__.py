"""Drop-ins: the names of other profilers, for code that is written for them. Each file stands for one package."""
