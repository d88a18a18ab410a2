"""Files of other tools, one format a file: `FORMAT = Format(...)` recognises, reads and writes them."""
