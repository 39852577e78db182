"""From keys to a plan: paths found, patterns spread out, defaults filled in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from sigdask.analysis.comparison.stopping.compatibility import adjustment_beside
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.execution.clusters.description import Named, describe
from sigdask.formats import Options, Source
from sigdask.io.text_files import text_of
from sigdask.nightly.gate import FALSE_ALARMS_PER_YEAR, Equivalent, NonInferior, NotWorse, Rule, web_hook
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.candidates import ranked
from sigdask.nightly.plan.cross_checks import check_across, check_comparisons
from sigdask.nightly.plan.errors import Complaint, nearest, shown
from sigdask.nightly.plan.keys import (
    BaselineKeys,
    BesagCliffordKeys,
    EquivalentKeys,
    GateKeys,
    NonInferiorKeys,
    PlanKeys,
    TestSetKeys,
)
from sigdask.nightly.plan.labellings import tested
from sigdask.nightly.plan.lines import Key
from sigdask.nightly.plan.model import OUTPUTS, Gate, NotifySettings, Plan, ReportFiles, TestSet
from sigdask.options import Adjust
from sigdask.statistics.classical.names import asked as classical_tests
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence, Stopping

DATABASES = ("sqlite", "postgresql")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _PlanLocation:
    """Where relative paths start, and where complaints go."""

    folder: Path
    complaints: list[Complaint]

    def complain(self, key: Key, text: str) -> None:
        self.complaints.append(Complaint(key, text))

    def attempt(self, key: Key, call: Callable[..., _T], *arguments: Any) -> _T | None:
        """Call what may refuse; a refusal becomes a complaint."""
        try:
            return call(*arguments)
        except InputError as error:
            self.complain(key, str(error))
            return None

    def path(self, key: Key, text: str | None, find: Callable[[str, Path], Path] = paths.existing) -> Path | None:
        return None if text is None else self.attempt(key, find, text, self.folder)


def resolve(keys: PlanKeys, path: Path, complaints: list[Complaint], numbers: Sequence[int]) -> Plan:
    """Make a plan of keys.

    Parameters
    ----------
    keys : PlanKeys
        Those that are valid each by itself.
    path : Path
        The plan file, absolute; other paths are relative to its folder.
    complaints : list of Complaint
        Added to. When it is not empty, what is returned must not be used; what does not follow from
        earlier complaints is judged all the same.
    numbers : sequence of int
        Places of the test sets in the file.
    """
    at = _PlanLocation(path.parent, complaints)
    is_whole = not complaints
    tests = at.attempt(("tests",), classical_tests, keys.tests) or ()
    test_sets = tuple(
        _test_set(own, keys, at, ("test_set", number), tests)
        for own, number in zip(keys.test_set, numbers, strict=True)
    )
    plan = Plan(
        path=path,
        name=keys.name or path.stem,
        test_sets=test_sets,
        seed=keys.seed,
        alpha=keys.alpha,
        second_run=keys.second_run,
        adjust=keys.adjust or _adjustment(keys),
        family=keys.family,
        stopping=_stopping(keys),
        cluster=_cluster(keys.cluster, at),
        workers=keys.workers,
        store=_store(keys.store, path, at),
        report=ReportFiles(
            **{name: at.path(("report", name), getattr(keys.report, name), paths.writable) for name in OUTPUTS},
            layout=keys.report.layout,
            digits=keys.report.digits,
            percent=keys.report.percent,
            figures=at.path(("report", "figures"), keys.report.figures, paths.folder),
            figure_format=keys.report.figure_format,
        ),
        gate=_gate(keys.gate, keys, at) if keys.gate is not None else None,
        rankings=ranked(keys, at.folder, at.complain),
        independence=tested(keys, at.folder, at.complain),
    )
    if is_whole:
        check_across(plan, at.complain)
    return plan


def _test_set(own: TestSetKeys, keys: PlanKeys, at: _PlanLocation, key: Key, tests: tuple[str, ...]) -> TestSet:
    baseline, pairs = _pairs(own.pairs or keys.pairs)
    metrics = own.metrics or keys.metrics or ()
    found = TestSet(
        name=own.name,
        sources=_sources(own, at, (*key, "systems")),
        gold=at.path((*key, "gold"), own.gold, partial(paths.existing, folders=paths.takes_folders(own.format))),
        format=own.format,
        options=replace(_options(own, at, key), metrics=metrics),
        metrics=metrics,
        unit=own.unit,
        by=own.by,
        baseline=baseline,
        pairs=pairs,
        alternative=own.alternative or keys.alternative,
        method=own.method or keys.method,
        exact_limit=keys.exact_limit if own.exact_limit is None else own.exact_limit,
        trials=own.trials or keys.trials,
        tests=tests if own.tests is None else at.attempt((*key, "tests"), classical_tests, own.tests) or (),
        interval=own.interval or keys.interval,
        confidence=own.confidence or keys.confidence,
        resamples=own.resamples or keys.resamples,
    )
    check_comparisons(found, own, key, at.complain)
    return found


def _pairs(pairs: Any) -> tuple[str | None, tuple[tuple[str, str], ...] | None]:
    if isinstance(pairs, BaselineKeys):
        return pairs.baseline, None
    return None, None if pairs == "all" else pairs


def _sources(own: TestSetKeys, at: _PlanLocation, key: Key) -> tuple[Source, ...]:
    found: dict[tuple[Path, ...], Source] = {}
    for source in paths.sources(own.systems, at.folder, own.format):
        if isinstance(source, InputError):
            at.complain(key, str(source))
            continue
        files = source.parts or (source.path,)
        if files in found:
            at.complain(key, f"found {shown(str(source.path))} twice")
        found[files] = source
    return tuple(found.values())


def _options(own: TestSetKeys, at: _PlanLocation, key: Key) -> Options:
    references = (own.references,) if isinstance(own.references, str) else own.references or ()
    found = [at.path((*key, "references"), text) for text in references]
    given: dict[str, Any] = {
        "id_column": own.id,
        "gold_column": own.gold_column,
        "prediction_column": own.prediction_column,
        "system_column": own.system_column,
        "score_column": own.score_column,
        "groups": tuple(dict.fromkeys(name for name in (own.unit, own.by) if name is not None and name != "item")),
        "ignore": own.ignore or (),
        "label_map": tuple((own.map or {}).items()),
        "align": own.align,
        "decimal": own.decimal,
        "missing": own.missing,
        "min_items": own.min_items,
        "references": tuple(path for path in found if path is not None),
        "documents": at.path((*key, "documents"), own.documents),
        "group_file": at.path((*key, "groups"), own.groups),
        "most_unpacked": own.most_unpacked,
        "name": own.name,
    }
    return at.attempt((*key, "ignore"), lambda: Options(**given)) or Options()


def _adjustment(keys: PlanKeys) -> Adjust | None:
    """Return the default: None leaves it to the number of systems, where all count the same trials."""
    rule = _stopping(keys)
    return None if rule is None else adjustment_beside(rule)


def _stopping(keys: PlanKeys) -> Stopping | None:
    if keys.stopping is None:
        return None
    if isinstance(keys.stopping, BesagCliffordKeys):
        return BesagClifford(keys.stopping.h)
    return ConfidenceSequence(keys.alpha, keys.stopping.epsilon)


def _cluster(cluster: str | Mapping[str, Any], at: _PlanLocation) -> Named:
    """Return what `--cluster` takes; a table is the content of a cluster file."""
    key: Key = ("cluster",)
    if isinstance(cluster, str):
        return _cluster_text(cluster, at, key)
    given = cluster.get("file", cluster.get("class"))
    named = "file" if "file" in cluster else "class"
    if not isinstance(given, str) or not given.strip():
        found = f"{named} = {shown(given)}" if named in cluster else shown(cluster)
        at.complain(key, f"found {found}, expected class = NAME and its options, or file = FILE.toml")
    elif named == "file":
        if len(cluster) > 1:
            at.complain(key, f"found {shown(cluster)}, expected `file` alone; options stand in the file")
        return _cluster_file(str(given), at, (*key, "file"))
    else:
        return at.attempt(key, partial(describe, where="[cluster]", folder=at.folder), cluster) or cluster
    return cluster


def _cluster_text(text: str, at: _PlanLocation, key: Key) -> str:
    if text.endswith((".json", ".toml")):
        return _cluster_file(text, at, key)
    if text not in clusters.WORDS and not text.startswith(("tcp://", "tls://")):
        at.complain(key, f"found {shown(text)}, expected {clusters.KINDS}; {nearest(text, clusters.WORDS, 'words')}")
    return text


def _cluster_file(text: str, at: _PlanLocation, key: Key) -> str:
    path = at.path(key, text, paths.local)
    if path is not None and path.suffix != ".json":
        at.attempt(key, clusters.read, path)
    return str(path or text)


def store_of(text: str | None, path: Path) -> str:
    """Return the file or URL of the database that a plan names, whatever else is wrong with it."""
    if text is not None and "://" not in text:
        return str(paths.absolute(text, path.parent))
    return _store(text, path, _PlanLocation(path.parent, []))


def _store(text: str | None, path: Path, at: _PlanLocation) -> str:
    """Return the file or URL of the database; by default a file beside the plan."""
    if text is None:
        return str(path.with_suffix(".sqlite"))
    scheme, separator, rest = text.partition("://")
    if not separator:
        file = at.path(("store",), text, paths.database)
        return str(file)
    if scheme.partition("+")[0] not in DATABASES:
        at.complain(
            ("store",),
            f"found {shown(scheme)}://…, expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; "
            f"{nearest(scheme, DATABASES, 'databases')}",
        )
    elif scheme.startswith("sqlite") and rest.startswith("/") and not rest.startswith("//"):
        file = at.path(("store",), rest[1:], paths.database)
        return str(file)
    return text


def _gate(own: GateKeys, keys: PlanKeys, at: _PlanLocation) -> Gate:
    tell = NotifySettings(
        command=_command(own.command or (), at),
        webhook=_webhook(own.webhook, at),
        body=_body(own.webhook_body, at),
        when=own.when,
        timeout=own.timeout,
    )
    if own.fdr != "none" and own.false_alarms_per_year is not None:
        text = (
            f'found {own.false_alarms_per_year:g} and fdr = "{own.fdr}", expected one of the two; each gives the level'
        )
        at.complain(("gate", "false_alarms_per_year"), text)
    return Gate(
        rules=tuple(_rule(rule, keys, own) for rule in own.rules),
        runs_per_year=own.runs_per_year,
        fdr=own.fdr,
        junit=at.path(("gate", "junit"), own.junit, paths.writable),
        json=at.path(("gate", "json"), own.json, paths.writable),
        tell=tell,
    )


def _rule(rule: Any, keys: PlanKeys, gate: GateKeys) -> Rule:
    shared = {
        "alpha": rule.alpha or keys.alpha,
        "baseline": rule.baseline,
        "test_sets": rule.test_sets or (),
        "metrics": rule.metrics or (),
    }
    if isinstance(rule, NonInferiorKeys):
        return NonInferior(margin=rule.margin, **shared)
    if isinstance(rule, EquivalentKeys):
        return Equivalent(margin=rule.margin, **shared)
    adjust: Literal["holm", "plan", "none"] = "holm" if keys.adjust in {None, "none"} else "plan"
    false_alarms = gate.false_alarms_per_year
    if false_alarms is None and rule.alpha is None and gate.fdr == "none":
        false_alarms = FALSE_ALARMS_PER_YEAR
    return NotWorse(
        adjust=rule.adjust or adjust, detectable=rule.detectable, false_alarms_per_year=false_alarms, **shared
    )


def _command(command: tuple[str, ...], at: _PlanLocation) -> tuple[str, ...]:
    """Find the program, as a path relative to the plan or on the PATH."""
    if not command:
        return command
    program = str(at.folder / command[0]) if "/" in command[0] else command[0]
    found = None if "\0" in "".join(command) else shutil.which(program)
    if found is None:
        at.complain(("gate", "command"), f"found {shown(command[0])}, expected a program that exists and may be run")
        return command
    return (found, *command[1:])


def _webhook(url: str | None, at: _PlanLocation) -> str | None:
    """Return the URL; $NAME stands for an environment variable, which may be empty: there is no web hook then."""
    key: Key = ("gate", "webhook")
    if url is not None and url.startswith("$"):
        name = url[1:]
        if name not in os.environ:
            at.complain(key, f"found {shown(url)}, and no such environment variable is set; empty is no web hook")
            return None
        url = os.environ[name]
        found = f"that of the environment variable {name}"
    else:
        found = "" if url is None else shown(url)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or any(c.isspace() for c in url):
        at.complain(key, f"found {found}, expected http://HOST/… or https://HOST/…")
    return url


def _body(text: str | None, at: _PlanLocation) -> str | None:
    """Return the template in a file, once it has made JSON of a verdict."""
    key: Key = ("gate", "webhook_body")
    path = at.path(key, text)
    if path is None:
        return None
    template = at.attempt(key, text_of, path, "a template of JSON")
    if template is not None:
        at.attempt(key, web_hook.check, template)
    return template
