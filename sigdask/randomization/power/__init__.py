"""Samples of other sizes, drawn from a tilted population of observed pairs of units, and tested."""
