"""The random stream, which decides which units each trial swaps."""
