"""Rules that decide whether a run passes: not worse than the baseline, non-inferior or equivalent.

Nothing is read or counted here: results, spreads and tests of margins come from elsewhere, the
p-values of earlier runs from the store.
"""
