"""Delay costs: which call path of which rank is the cause of waits, directly and through the waits of others."""
