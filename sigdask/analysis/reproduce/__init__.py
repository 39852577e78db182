"""Results found again: what was recorded of them, by which settings they are found, and whether they are the same."""
