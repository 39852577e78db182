"""Write Yeh's example as a response file: the relations of section 3.3, rebuilt from the counts printed there.

103 gold relations: 19 found by both systems, 28 by I only, 6 by II only, 50 by neither; spurious:
5 by both, 43 by I only, 9 by II only (A. Yeh 2000, "More accurate tests for the statistical
significance of result differences", COLING).

    python -m sigdask.examples.yeh2000 > yeh2000.tsv
"""

from collections.abc import Iterator

COUNTS = ((1, 1, 1, 19), (1, 1, 0, 28), (1, 0, 1, 6), (1, 0, 0, 50), (0, 1, 1, 5), (0, 1, 0, 43), (0, 0, 1, 9))
"""(items of interest, found by system I, found by system II, number of such sentences)."""


def iter_lines() -> Iterator[str]:
    """Yield the lines of the example file, made from the counts that Yeh (2000) prints."""
    yield "relation\tof_interest\tI\tII"
    number = 0
    for gold, first, second, how_many in COUNTS:
        for _ in range(how_many):
            number += 1
            yield f"r{number:03}\t{gold}\t{first}\t{second}"


if __name__ == "__main__":
    print("\n".join(iter_lines()))
