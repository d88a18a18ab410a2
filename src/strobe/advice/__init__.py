"""Rules, one a file (`RULE = Rule(...)`), and their ranking: what is worth fixing, and what it would gain."""
