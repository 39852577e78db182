"""Overnight: a plan is counted whatever happens, and what is counted is never counted again."""

from sigdask.nightly.run.driver import Outcome, run_plan
from sigdask.nightly.run.interrupt import parse_deadline

__all__ = ["Outcome", "parse_deadline", "run_plan"]
