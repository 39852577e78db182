"""Intervals of differences: which kind each comparison has, the jobs that it needs, and its results."""
