"""Benchmarks of sigdask against other tools: `python -m benchmarks`."""
