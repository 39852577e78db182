"""Overnight: a plan is counted whatever happens, and what is counted is never counted again."""

from sigdask.overnight.interrupt import parse_deadline
from sigdask.overnight.run import Outcome, run_plan

__all__ = ["Outcome", "parse_deadline", "run_plan"]
