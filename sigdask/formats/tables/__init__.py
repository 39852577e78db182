"""Tables of scores, labels and responses."""
