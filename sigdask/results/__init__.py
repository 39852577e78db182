"""What was found of comparisons: a view of one, all of them as columns, and what is written of them."""
