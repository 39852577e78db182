"""Statistical power: populations with a given difference, power of sign tests, and search for a power."""
