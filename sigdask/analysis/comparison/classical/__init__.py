"""The classical tests of comparisons: which of them fits a score, and the sums that they need."""
