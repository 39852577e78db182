"""Lists of candidates that measures rank: tables, data sets of UCS, XML of mwetoolkit.

All become a table of text first, a column each of ids, of what is true and of every measure; then what is asked of
the table is the same for all.
"""

from __future__ import annotations

from pathlib import Path

from sigdask.counts.candidates import Candidates
from sigdask.formats.candidates import mwetoolkit, ucs
from sigdask.formats.candidates.columns import CandidateColumns, build_candidates
from sigdask.formats.reading.tables import read_table
from sigdask.io import as_path
from sigdask.io.compression import limit_unpacking

__all__ = ["CandidateColumns", "read"]


def read(path: str | Path, columns: CandidateColumns | None = None, *, name: str = "") -> Candidates:
    """Read one file of candidates; its kind is known by its content.

    Parameters
    ----------
    path : str or Path
        TSV, CSV, JSON or Parquet; a data set of UCS (.ds); XML of mwetoolkit; gzipped or not.
    columns : CandidateColumns, optional
        Which columns hold what.
    name : str
        Of the test set.

    Raises
    ------
    InputError
        It names the file and, where there is one, the line.
    """
    file, choices = as_path(path), columns or CandidateColumns()
    with limit_unpacking(choices.most_unpacked):
        if mwetoolkit.is_xml(file):
            table, conventions = mwetoolkit.read_table(file)
            return build_candidates(table, choices, name, conventions)
        if ucs.is_data_set(file):
            return build_candidates(ucs.read_table(file), choices, name, ucs.CONVENTIONS)
        return build_candidates(read_table(file, choices.ignore, choices.decimal), choices, name)
