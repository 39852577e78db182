"""Resampled units: the paired bootstrap, and the randomization test inverted, as counts that add."""
