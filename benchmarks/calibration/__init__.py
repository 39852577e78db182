"""Error rates of every procedure that prints a p-value or an interval, on simulated and real data.

`measuring` counts what procedures do with data sets, in batches that any number of workers may share; `scenarios` draw
these, `real` takes them from real systems' outputs; `pairs`, `families`, `margins` and their like say what is asked of
which procedure; `table` writes what was found.
"""
