"""Resampling of units: the paired bootstrap and the inverted randomization test, as counts that add."""
