"""Make real system outputs on the spot: two classifiers on scikit-learn's bundled digits.

    python -m sigdask.examples.digits FOLDER

writes gold.csv, logistic.csv and bayes.csv, one label per item.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

from sigdask.errors import explain_missing


def write(folder: Path) -> None:
    """Train on one half of the digits, predict the other, write the files."""
    with explain_missing("scikit-learn", "examples", "the digits example"):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import train_test_split
        from sklearn.naive_bayes import GaussianNB

    pixels, digits = load_digits(return_X_y=True)
    training, unseen, true_labels, gold = train_test_split(
        pixels, digits, test_size=0.5, random_state=0, stratify=digits
    )
    systems = {"logistic": LogisticRegression(max_iter=5000), "bayes": GaussianNB()}
    folder.mkdir(parents=True, exist_ok=True)
    _write_column(folder / "gold.csv", "gold", gold)
    for name, classifier in systems.items():
        _write_column(folder / f"{name}.csv", "prediction", classifier.fit(training, true_labels).predict(unseen))


def _write_column(path: Path, column: str, labels: Iterable[object]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", column])
        writer.writerows([f"d{k:03}", label] for k, label in enumerate(labels))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
