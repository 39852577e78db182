"""Exact p-values, computed without trials: which comparisons have them, and the jobs that compute them."""
