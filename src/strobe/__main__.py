"""`python -m strobe` is `strobe`."""

from strobe.cli.main import entry_point

if __name__ == "__main__":
    entry_point()
