"""Answers to questions about operators."""
