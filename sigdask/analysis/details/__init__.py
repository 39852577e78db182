"""A comparison opened: what its p is made of, for those few that a reader looks into."""
