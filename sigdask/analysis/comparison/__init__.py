"""Comparisons of systems: specifications of test sets, the jobs that count them, and their results."""
