"""Analyses: comparisons, power, independence, candidate rankings, details of results, reproduction."""
