"""Profiles without a time axis: sums by call path, function or line."""
