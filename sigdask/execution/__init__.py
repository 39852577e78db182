"""Execution of jobs as tasks in this process, on threads or on dask, and the sums of their counts."""
