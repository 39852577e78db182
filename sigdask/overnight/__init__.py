"""Overnight: a plan is counted whatever happens, and what is counted is never counted again."""

from sigdask.overnight.run import Outcome, kept, run_plan
from sigdask.overnight.stop import parse_deadline

__all__ = ["Outcome", "kept", "parse_deadline", "run_plan"]
