"""Exact tails of sums of signed numbers: one method per module."""
