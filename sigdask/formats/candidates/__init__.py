"""Read lists of candidates with the scores of several measures: tables, UCS data sets and XML of mwetoolkit.

Every kind of file is first read as a table of text, with columns of ids, of the gold standard and of the measures.
Candidates are then built from the table.
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
    """Read the candidates of one file; whether it is a table, a UCS data set or mwetoolkit XML is detected.

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
