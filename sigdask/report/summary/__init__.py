"""The parts of a verdict: amounts, sentences on comparisons, checks and doubtful results."""
