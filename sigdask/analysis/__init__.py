"""Analyses: comparisons, power, independence, candidate rankings, details of a comparison, reproduction."""
