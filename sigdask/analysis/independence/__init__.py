"""Is one labelling independent of another: a score of agreement, its exact p, and permutations."""
