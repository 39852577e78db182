"""Side by side with the tools users have: `python -m benchmarks`."""
