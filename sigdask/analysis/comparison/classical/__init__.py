"""The classical tests of comparisons: which tests fit a score, and the sums over units that they need."""
