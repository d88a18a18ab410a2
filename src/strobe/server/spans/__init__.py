"""Single spans: facts about one, its links, gaps between them, and searches."""
