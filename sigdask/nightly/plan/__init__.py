"""Plans: one TOML file that describes a nightly evaluation, validated in full before anything runs."""

from sigdask.nightly.plan.load import build_schema, load_plan, read_store_and_name
from sigdask.nightly.plan.model import Gate, Plan, ReportFiles
from sigdask.nightly.test_sets import TestSet

__all__ = ["Gate", "Plan", "ReportFiles", "TestSet", "build_schema", "load_plan", "read_store_and_name"]
