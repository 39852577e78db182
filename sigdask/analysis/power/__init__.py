"""Power: how many units a difference needs, and which difference the present units detect."""
