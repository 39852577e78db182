"""Exact p-values in addition to sampled ones: which comparisons have them, and how they change p."""
