"""The inner loops: what swapped units move, and how often a difference is at least as extreme."""
