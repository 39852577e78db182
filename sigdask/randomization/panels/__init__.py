"""What is counted: sums, sets and whole outputs of the systems of a test set, and families of them."""
