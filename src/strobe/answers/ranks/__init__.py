"""Answers to questions about ranks and what they wait for."""
