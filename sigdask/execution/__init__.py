"""Execution: jobs become tasks on this process, on threads or on a dask cluster, and their counts are summed."""
