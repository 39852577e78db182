"""Tail probabilities of sums of randomly signed numbers: one method per module."""
