"""Approximate randomization: panels, the swaps they share, and tallies of exceedances."""
