"""Statistics on arrays and numbers only: bounds, multiplicity, stopping, checks, dependence."""
