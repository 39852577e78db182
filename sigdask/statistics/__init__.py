"""Statistics of arrays and numbers alone: bounds, multiplicity, stopping, checks, dependence."""
