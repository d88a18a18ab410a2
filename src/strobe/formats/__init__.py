"""Files of other tools, one format a file: `FORMAT = Format(...)` recognises them, and writes them where it can."""
