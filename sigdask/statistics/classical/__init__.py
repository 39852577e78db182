"""The classical tests that Yeh 2000 discusses, vectorized over many comparisons."""
