"""Statistics of ranked lists: n best, average precision, pairs of lists, and samples of them.

Evert 2004, "Significance tests for the evaluation of ranking methods"; Evert & Krenn 2005, "Using small random
samples for the manual evaluation of statistical association measures".
"""
