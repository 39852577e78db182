"""Approximate randomization: panels, the shuffles they share, and the tallies of exceedances."""
