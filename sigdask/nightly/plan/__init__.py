"""Plans: one TOML file that says what a night evaluates, validated whole before anything runs."""

from sigdask.nightly.plan.load import load_plan, peek, schema, schema_text
from sigdask.nightly.plan.model import Gate, NotifySettings, Plan, ReportFiles, TestSet

__all__ = ["Gate", "NotifySettings", "Plan", "ReportFiles", "TestSet", "load_plan", "peek", "schema", "schema_text"]
