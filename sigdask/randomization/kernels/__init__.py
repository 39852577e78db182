"""What counts: compiled loops over swap words, sums and scores."""
