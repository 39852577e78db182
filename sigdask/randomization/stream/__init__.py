"""The random stream: which units each trial swaps."""
