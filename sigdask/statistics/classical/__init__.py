"""The classical tests that Yeh 2000 speaks of, for many comparisons at once: one idea a module, arrays in and out."""
