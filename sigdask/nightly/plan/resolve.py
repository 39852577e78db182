"""Turn the keys of a plan into a plan: resolve paths, expand patterns, fill in defaults."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.formats import Options, Source
from sigdask.nightly.gate.rules import FALSE_ALARMS_PER_YEAR, NonInferior, NotWorse, Rule
from sigdask.nightly.plan import keys as tables
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.cross_checks import check_comparisons, check_pairs, check_plan
from sigdask.nightly.plan.errors import Complaint, PlanKey, attempt, format_value, suggest_nearest
from sigdask.nightly.plan.model import OUTPUTS, Gate, NotifySettings, Plan, ReportFiles
from sigdask.nightly.test_sets import TestSet
from sigdask.options import (
    Option,
    SelectionOptions,
    fill_options,
)
from sigdask.results.export import parse_unit_file
from sigdask.statistics.classical import parse_tests

GivenOptions = Mapping[str, Any]
"""Options given in a table of the plan, by name."""

DATABASES = ("sqlite", "postgresql")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _PlanLocation:
    """The folder that relative paths start from, and the list that collects complaints."""

    folder: Path
    complaints: list[Complaint]

    def complain(self, key: PlanKey, text: str) -> None:
        self.complaints.append(Complaint(key, text))

    def attempt(self, key: PlanKey, call: Callable[..., _T], *arguments: Any) -> _T | None:
        """Call a function, and turn an InputError into a complaint."""
        return attempt(self.complaints, key, call, *arguments)

    def find_path(
        self, key: PlanKey, text: str | None, find: Callable[[str, Path], Path] = paths.resolve_existing
    ) -> Path | None:
        return None if text is None else self.attempt(key, find, text, self.folder)


def resolve_plan(keys: tables.PlanKeys, path: Path, complaints: list[Complaint], numbers: Sequence[int]) -> Plan:
    """Return the plan that valid keys describe.

    Parameters
    ----------
    keys : tables.PlanKeys
        Keys of the plan, each of them valid.
    path : Path
        The plan file, absolute; other paths are relative to its folder.
    complaints : list of Complaint
        List to which complaints are added. If it is not empty, the returned plan must not be used. Keys that earlier
        complaints do not affect are checked nevertheless.
    numbers : sequence of int
        Indices of the test sets in the file.
    """
    location = _PlanLocation(path.parent, complaints)
    is_valid = not complaints
    shared = _list_set_options(keys, tables.PLAN_OPTIONS, location, ())
    check_pairs(shared.get("pairs") or (), ("pairs",), location.complain)
    numbered = zip(keys.test_set, numbers, strict=True)
    plan = Plan(
        path=path,
        name=keys.name or path.stem,
        test_sets=tuple(_build_test_set(entry, shared, location, ("test_set", n)) for entry, n in numbered),
        comparison=fill_options(SelectionOptions, shared),
        cluster=_resolve_cluster(keys.cluster, location),
        store=_resolve_store(keys.store, path, location),
        report=_build_report(keys.report, location),
        gate=None if keys.gate is None else _build_gate(keys.gate, shared, location),
    )
    if is_valid:
        check_plan(plan, location.complain)
    return plan


def _list_set_options(
    keys: Any, declared: Mapping[str, Option], location: _PlanLocation, where: PlanKey
) -> dict[str, Any]:
    """Return the options that a table of the plan gives, by their names; paths and tests are resolved."""
    given: dict[str, Any] = {}
    for name in declared:
        key = tables.get_key(name)
        value = getattr(keys, key)
        if name == "pairs" and value is not None:
            pairs = value if isinstance(value, tuple) else None
            given |= {"baseline": getattr(value, "baseline", None), "pairs": pairs}
        elif value is not None:
            convert = CONVERSIONS.get(name)
            given[name] = value if convert is None else convert(location, (*where, key), value)
    return given


def _list_texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


CONVERSIONS: dict[str, Callable[[_PlanLocation, PlanKey, Any], Any]] = {
    "tests": lambda location, key, tests: location.attempt(key, parse_tests, tests),
    "label_map": lambda _location, _key, table: tuple(table.items()),
    "references": lambda location, key, texts: tuple(
        path for text in _list_texts(texts) if (path := location.find_path(key, text)) is not None
    ),
    "documents": _PlanLocation.find_path,
    "group_file": _PlanLocation.find_path,
}
"""Conversions of the values of keys, by option."""


def _build_test_set(entry: tables.TestSetKeys, shared: GivenOptions, location: _PlanLocation, key: PlanKey) -> TestSet:
    given = _list_set_options(entry, tables.SET_OPTIONS, location, key)
    options = fill_options(SelectionOptions, {"metrics": (), **shared, "unit": entry.unit, **given})
    columns = (entry.unit, options["by"])
    test_set = TestSet(
        name=entry.name,
        sources=_find_sources(entry.systems, entry.format, location, (*key, "systems"), once=True),
        gold=location.find_path((*key, "gold"), entry.gold, partial(paths.resolve_existing, folders=True)),
        format=entry.format,
        options=location.attempt(
            (*key, "ignore"),
            lambda: Options(
                **_list_set_options(entry, tables.FILE_OPTIONS, location, key),
                groups=tuple(dict.fromkeys(name for name in columns if name not in {None, "item"})),
                name=entry.name,
                metrics=given.get("metrics") or shared.get("metrics", ()),
            ),
        )
        or Options(),
        comparison=options,
    )
    check_comparisons(test_set, given, key, location.complain)
    return test_set


def _find_sources(
    systems: Any, format_: str, location: _PlanLocation, key: PlanKey, *, once: bool = False
) -> tuple[Source, ...]:
    """Return the sources of systems; complain about missing files, and with `once` about repeated ones."""
    by_files: dict[tuple[Path, ...], Source] = {}
    for source in paths.find_sources(systems, location.folder, format_):
        if isinstance(source, InputError):
            location.complain(key, str(source))
            continue
        files = source.parts or (source.path,)
        if once and files in by_files:
            location.complain(key, f"found {format_value(str(source.path))} twice")
        by_files[files] = source
    return tuple(by_files.values())


def _build_report(keys: Any, location: _PlanLocation) -> ReportFiles:
    find = partial(location.find_path, find=paths.resolve_writable)
    paths_by_name = {name: find(("report", name), getattr(keys, name)) for name in OUTPUTS}
    files = {name: path for name, path in paths_by_name.items() if path is not None}
    if "items" in files:
        location.attempt(("report", "items"), parse_unit_file, files["items"])
    return ReportFiles(files, location.find_path(("report", "site"), keys.site, paths.resolve_site))


def _resolve_cluster(cluster: str, location: _PlanLocation) -> str:
    """Return the cluster as `--cluster` takes it; a file's path is made absolute."""
    key: PlanKey = ("cluster",)
    if cluster.endswith((".json", ".toml")):
        path = location.find_path(key, cluster, paths.resolve_local)
        if path is not None and path.suffix != ".json":
            location.attempt(key, clusters.read, path)
        return str(path or cluster)
    if cluster not in clusters.CLUSTER_WORDS and not cluster.startswith(("tcp://", "tls://")):
        hint = suggest_nearest(cluster, clusters.CLUSTER_WORDS, "words")
        location.complain(key, f"found {format_value(cluster)}, expected {clusters.KINDS}; {hint}")
    return cluster


def find_store(text: str | None, path: Path) -> str:
    """Return the file or URL of a plan's database, even if the rest of the plan is invalid."""
    if text is not None and "://" not in text:
        return str(paths.resolve_path(text, path.parent))
    return _resolve_store(text, path, _PlanLocation(path.parent, []))


def _resolve_store(text: str | None, path: Path, location: _PlanLocation) -> str:
    """Return the file or URL of the database; by default a file next to the plan."""
    if text is None:
        return str(path.with_suffix(".sqlite"))
    scheme, separator, rest = text.partition("://")
    if not separator:
        return str(location.find_path(("store",), text, paths.resolve_database))
    if scheme.partition("+")[0] not in DATABASES:
        location.complain(
            ("store",),
            f"found {format_value(scheme)}://…, expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; "
            f"{suggest_nearest(scheme, DATABASES, 'databases')}",
        )
    elif scheme.startswith("sqlite") and rest.startswith("/") and not rest.startswith("//"):
        return str(location.find_path(("store",), rest[1:], paths.resolve_database))
    return text


def _build_gate(gate_keys: Any, shared: GivenOptions, location: _PlanLocation) -> Gate:
    notify = NotifySettings(
        command=_find_command(gate_keys.command or (), location),
        webhook=_resolve_webhook(gate_keys.webhook, location),
        when=gate_keys.when,
        timeout=gate_keys.timeout,
    )
    return Gate(
        rules=tuple(_build_rule(rule, shared, gate_keys) for rule in gate_keys.rules),
        runs_per_year=gate_keys.runs_per_year,
        junit=location.find_path(("gate", "junit"), gate_keys.junit, paths.resolve_writable),
        json=location.find_path(("gate", "json"), gate_keys.json, paths.resolve_writable),
        notify=notify,
    )


def _build_rule(rule: Any, shared_options: GivenOptions, gate: Any) -> Rule:
    shared = {
        "alpha": rule.alpha or shared_options["alpha"],
        "baseline": rule.baseline,
        "test_sets": rule.test_sets or (),
        "metrics": rule.metrics or (),
    }
    if isinstance(rule, tables.NonInferiorKeys):
        return NonInferior(margin=rule.margin, **shared)
    false_alarms = gate.false_alarms_per_year
    if false_alarms is None and rule.alpha is None:
        false_alarms = FALSE_ALARMS_PER_YEAR
    return NotWorse(false_alarms_per_year=false_alarms, **shared)


def _find_command(command: tuple[str, ...], location: _PlanLocation) -> tuple[str, ...]:
    """Return the command with its program resolved relative to the plan or on the PATH."""
    if not command:
        return command
    program = str(location.folder / command[0]) if "/" in command[0] else command[0]
    program_path = None if "\0" in "".join(command) else shutil.which(program)
    if program_path is None:
        location.complain(
            ("gate", "command"), f"found {format_value(command[0])}, expected a program that exists and may be run"
        )
        return command
    return (program_path, *command[1:])


def _resolve_webhook(url: str | None, location: _PlanLocation) -> str | None:
    """Return the URL; $NAME reads it from the environment, where an empty value means no web hook."""
    key: PlanKey = ("gate", "webhook")
    if url is not None and url.startswith("$"):
        name = url[1:]
        if name not in os.environ:
            location.complain(
                key,
                f"found {format_value(url)}, but this environment variable is not set; set it to an empty text "
                f"for no web hook",
            )
            return None
        url = os.environ[name]
        found_text = f"that of the environment variable {name}"
    else:
        found_text = "" if url is None else format_value(url)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or any(c.isspace() for c in url):
        location.complain(key, f"found {found_text}, expected http://HOST/… or https://HOST/…")
    return url
