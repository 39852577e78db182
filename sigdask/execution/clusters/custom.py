"""Any other dask cluster class, as `module:Class` with options."""

from __future__ import annotations

import importlib
import inspect
from functools import partial, reduce
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.certificates import Files
from sigdask.execution.clusters.description import Description
from sigdask.execution.clusters.lifecycle import ClusterKind


def kind(description: Description) -> ClusterKind:
    """Return how a class of the user's is started."""
    return ClusterKind(partial(_make, _class(description)))


def _make(made: Any, description: Description, files: Files | None) -> Any:
    options = dict(description.options)
    if files is not None:
        if not _takes(made, "security"):
            raise description.refuse(
                f"{description.kind} takes no security=, so TLS cannot be given to it; "
                'write security = "tcp" to start it without'
            )
        options["security"] = files.security()
        if _takes(made, "protocol"):
            options.setdefault("protocol", "tls://")
    return made(**options)


def _class(description: Description) -> Any:
    module, _, name = description.kind.partition(":")
    try:
        return reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise InputError(f"{description.where}: class {description.kind!r}: {error}") from None


def _takes(made: Any, name: str) -> bool:
    parameters = inspect.signature(made).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
