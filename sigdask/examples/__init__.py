"""Examples: Yeh's relations as a file, and a script that makes real system outputs on the spot."""
