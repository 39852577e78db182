"""`python -m sigdask`."""

from sigdask.cli import main

main()
