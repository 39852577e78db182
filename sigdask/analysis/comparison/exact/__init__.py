"""Exact p-values beside sampled ones: which can be had, of which problems, kept by content, and what they make of p."""
