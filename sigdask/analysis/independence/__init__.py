"""Is one labelling independent of another: a score of their agreement, its exact distribution, and permutations."""
