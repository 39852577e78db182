"""`python -m sigdask`, which must not import a signal.py of the working directory, as Python would by itself."""

import os
import sys

if sys.path[0] == os.getcwd():  # noqa: PTH109  # pathlib imports more; user code is found without it (`add_folder`)
    del sys.path[0]

from sigdask.cli import main

main()
