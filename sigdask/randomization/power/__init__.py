"""Power by simulation: samples of any size are drawn from the observed units under a tilt, and tested."""
