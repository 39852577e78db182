"""Reproduce recorded results from their signatures, and check that they are the same."""
