"""Resampling of units: the paired bootstrap and the inverted randomization test, counted in tallies."""
