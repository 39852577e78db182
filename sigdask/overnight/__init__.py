"""Overnight: a plan is counted whatever happens, and what is counted is never counted again."""

from sigdask.overnight.run import Outcome, run_plan
from sigdask.overnight.stop import parse_deadline

__all__ = ["Outcome", "parse_deadline", "run_plan"]
