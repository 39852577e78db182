"""What this machine keeps for a process: temporary folders of its own, and compiled functions."""
