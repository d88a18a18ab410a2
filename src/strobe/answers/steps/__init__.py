"""Answers to questions about steps and loops."""
