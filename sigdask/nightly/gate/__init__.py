"""Rules that decide whether a run passes: not worse than the baseline, or non-inferior to it.

This package reads and counts nothing. It is given results, standard deviations, tests of margins, and the failures of
earlier runs from the store.
"""
