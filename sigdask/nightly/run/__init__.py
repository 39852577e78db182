"""Runs of plans: interrupted runs resume from the store, and stored trials are not counted again."""

from sigdask.nightly.run.count import parse_deadline
from sigdask.nightly.run.driver import Outcome, run_plan

__all__ = ["Outcome", "parse_deadline", "run_plan"]
