"""The classical tests of comparisons: which of them fits a score, and what they take of its items and units."""
