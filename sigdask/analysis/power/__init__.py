"""How many units a difference needs to be found, and which difference the present units find: of all pairs at once."""
