"""Confidence intervals of differences: the kind that each comparison gets, the jobs to count, and the results."""
