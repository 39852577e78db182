"""Kernels: compiled loops over swap words, sums and scores, which do the counting."""
