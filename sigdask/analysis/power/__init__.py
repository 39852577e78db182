"""Power analysis: the number of units that detect a difference, and the difference that the present units detect."""
