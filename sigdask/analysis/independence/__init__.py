"""Tests whether one labelling is independent of another: scores of agreement, exact p-values, and permutations."""
