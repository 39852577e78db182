"""Statistics on arrays and numbers only: bounds, multiplicity, checks, dependence."""
