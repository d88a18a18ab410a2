"""Answers to questions about the program as a whole."""
