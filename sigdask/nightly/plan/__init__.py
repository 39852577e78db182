"""Plans: one TOML file that says what a night evaluates, validated whole before anything runs."""

from sigdask.nightly.plan.load import load_plan, peek, schema, schema_text
from sigdask.nightly.plan.model import Gate, Plan, Report, Tell, TestSet

__all__ = ["Gate", "Plan", "Report", "Tell", "TestSet", "load_plan", "peek", "schema", "schema_text"]
