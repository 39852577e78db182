"""Distinct columns of a panel: a system's contributions to a field minus those of its base system, up to sign.

They are views of the panel's contributions: a panel of 1,000 systems and 10^5 items is not held twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit


@dataclass(frozen=True, slots=True, eq=False)
class DistinctColumns:
    """The distinct nonzero columns of a panel: contributions to a field minus those of a base system, up to sign.

    Attributes
    ----------
    values : int array, shape (n_units, n_systems, n_fields)
        The panel's contributions, in a type that holds their differences.
    systems, bases, fields : int64 array, shape (n_columns,)
        The first system that has the column, the base system that is subtracted, and the field.
    signs : int array, shape (n_columns,)
        1 or -1, so that each column's first nonzero number is positive.
    """

    values: NDArray[Any]
    systems: NDArray[np.int64]
    bases: NDArray[np.int64]
    fields: NDArray[np.int64]
    signs: NDArray[Any]

    def __len__(self) -> int:
        return len(self.systems)

    @property
    def n_units(self) -> int:
        """Number of units of each column."""
        return len(self.values)

    def compute_values(self, units: slice) -> NDArray[Any]:
        """Return the columns for some units, shape (n_columns, n_units), in the contributions' type."""
        values = self.values[units]
        differences = values[:, self.systems, self.fields] - values[:, self.bases, self.fields]
        return np.asarray((differences * self.signs).T)

    def write(self, units: slice, out: NDArray[np.float32]) -> None:
        """Write the columns for some units to `out`, shape (n_columns, n_units)."""
        write_columns(self.values[units], self.systems, self.bases, self.fields, self.signs, out)


@cached_njit()
def write_columns(values, systems, bases, fields, signs, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write signed differences between systems' contributions to `out`, shape (n_columns, n_units)."""
    for c in range(out.shape[0]):
        column = values[:, systems[c], fields[c]]
        base = values[:, bases[c], fields[c]]
        for u in range(out.shape[1]):
            out[c, u] = signs[c] * (column[u] - base[u])
