"""How often a test finds a difference: populations that have it, power of sign tests, where power is as wanted."""
