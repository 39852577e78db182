"""Mutants of a module: copies of its source with one small fault each.

Docstrings, annotations, decorators, assertions, messages and functions that return text are left alone.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
"""Each operator, and what replaces it."""

ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
}  # fmt: skip
LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

FUNCTION_PAIRS = (
    ("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil"),
    ("zeros", "ones"), ("zeros_like", "ones_like"),
)  # fmt: skip
FUNCTIONS = {old: new for pair in FUNCTION_PAIRS for old, new in (pair, pair[::-1])}

UNMUTATED_METHODS = {"__repr__", "__str__", "__format__", "_repr_html_"}
UNMUTATED_KEYWORDS = {"strict", "dtype", "maxsize", "encoding", "daemon", "name"}
MESSAGE_CALLS = re.compile(r"(log\.\w+|warnings\.warn|print|text)$")
NUMBER_TYPES = re.compile(r"(int|float|Array|Floats|Integers|Keys|NDArray\[(?!np\.bool).*\])$")
TYPE_NAMES = re.compile(r"([A-Z]\w*|int|str|float|bool|bytes|bytearray|memoryview)$")

Span = tuple[int, int]
"""Where a piece of source begins and ends, in bytes."""

Change = tuple[Span, tuple[str, ...]]
"""A piece of source, and the texts that may replace it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of source that can be changed, and the texts that may replace it.

    Attributes
    ----------
    line : int
        Its line.
    name : str
        The function, class or constant at the module's top level that it belongs to.
    span : Span
        Its bytes.
    texts : tuple of str
        The replacements.
    """

    line: int
    name: str
    span: Span
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module's source with one change, whose removed and added lines are `diff`."""

    line: int
    name: str
    source: str
    diff: tuple[str, ...]


def draw_mutants(source: str, names: Iterable[str], n: int, random: Random) -> list[Mutant]:
    """Draw up to `n` mutants, each of which changes another place, and return them in the order of lines."""
    places = list_places(source, names)
    mutants: list[Mutant] = []
    for place in random.sample(places, len(places)):
        if len(mutants) == n:
            break
        mutant = _build_mutant(source, place, random.choice(place.texts))
        if mutant is not None:
            mutants.append(mutant)
    return sorted(mutants, key=lambda mutant: mutant.line)


def list_places(source: str, names: Iterable[str] = ()) -> list[Place]:
    """Return the places that can be changed in the functions, classes and constants of these names, or in all."""
    return list(_SourceReader(source).iter_places(set(names)))


def count_skipped(source: str, names: Iterable[str] = ()) -> int:
    """Return the number of places that are left alone: those in annotations, messages and the like."""
    n_all = sum(1 for _ in _SourceReader(source).iter_places(set(names), everything=True))
    return n_all - len(list_places(source, names))


def list_names(source: str) -> set[str]:
    """Return the names that a module defines at its top level."""
    return {name for statement in ast.parse(source).body for name in _list_defined_names(statement)}


def _build_mutant(source: str, place: Place, text: str) -> Mutant | None:
    """Return the mutant, or None if it is no Python or the same program."""
    data, (begin, end) = source.encode(), place.span
    mutated = (data[:begin] + text.encode() + data[end:]).decode()
    try:
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    lines = difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0, lineterm="")
    diff = tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))
    return Mutant(place.line, place.name, mutated, diff)


def _list_defined_names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign():
            return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


class _SourceReader:
    """Finds the places of a module that can be changed."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.data = source.encode()
        self.line_starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))

    def iter_places(self, names: set[str], *, everything: bool = False) -> Iterator[Place]:
        """Yield the places; with `everything` also those that are left alone."""
        for statement in self.tree.body:
            defined = _list_defined_names(statement)
            if defined and (not names or names & set(defined)):
                for span, texts in self._iter_changes(statement, statement, None, everything=everything):
                    line = self.data[: span[0]].count(b"\n") + 1
                    yield Place(line, defined[0], span, texts)

    def _iter_changes(
        self, node: ast.AST, parent: ast.AST, function: ast.FunctionDef | None, *, everything: bool
    ) -> Iterator[Change]:
        """Yield the changes of a node and of those below it."""
        if isinstance(node, ast.stmt):
            yield from self._list_statement_changes(node, function)
        elif isinstance(node, ast.expr):
            yield from self._list_expression_changes(node)
            if node is getattr(parent, "test", None) and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield self._get_span(node), (f"not ({self._get_text(node)})",)
        inner = node if isinstance(node, ast.FunctionDef) else function
        for child in ast.iter_child_nodes(node) if everything else _list_children(node):
            yield from self._iter_changes(child, node, inner, everything=everything)

    def _list_expression_changes(self, node: ast.expr) -> Iterator[Change]:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.BinOp() | ast.UnaryOp():
                yield from self._list_operator_changes(node)
            case ast.Constant(value=bool(value)):
                yield self._get_span(node), (str(not value),)
            case ast.Constant(value=int(value) | float(value)):
                yield self._get_span(node), (repr(value + 1), repr(value - 1))
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if name in FUNCTIONS:
                end = self._get_span(node)[1]
                yield (end - len(name), end), (FUNCTIONS[name],)
            case ast.Subscript(slice=index):
                for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                    yield from self._list_index_changes(part)

    def _list_operator_changes(self, node: ast.expr) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=operators, comparators=values):
                for (before, after), operator in zip(pairwise((left, *values)), operators, strict=True):
                    yield self._replace_between(before, after, *COMPARISONS[type(operator)])
            case ast.BoolOp(op=operator, values=values):
                for before, after in pairwise(values):
                    yield self._replace_between(before, after, *LOGIC[type(operator)])
            case ast.BinOp(left=left, op=operator, right=right):
                if type(operator) in ARITHMETIC and not _is_text(node) and not _is_type(node):
                    yield self._replace_between(left, right, *ARITHMETIC[type(operator)])
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield (self._get_span(node)[0], self._get_span(operand)[0]), (self._get_opening(node, operand),)

    def _list_index_changes(self, index: ast.expr) -> Iterator[Change]:
        """Yield indices that are off by one; constants are changed as all constants are."""
        match index:
            case ast.Slice(lower=lower, upper=upper):
                for bound in (lower, upper):
                    if bound is not None and not isinstance(bound, ast.Constant):
                        yield self._get_span(bound), tuple(f"{self._get_text(bound)} {sign} 1" for sign in "+-")
            case ast.Name(id=name) if len(name) == 1 and name.islower():  # longer names are often keys or masks
                yield self._get_span(index), (f"{name} + 1", f"{name} - 1")

    def _list_statement_changes(self, node: ast.stmt, function: ast.FunctionDef | None) -> Iterator[Change]:
        span = self._get_span(node)
        match node:
            case ast.Return(value=value) if value is not None and function is not None:
                if text := self._get_other_value(value, function):
                    yield self._get_span(value), (text,)
            case ast.AugAssign(target=target, op=operator, value=value):
                old, new = ARITHMETIC.get(type(operator), ("", ""))
                if old:
                    yield self._replace_between(target, value, f"{old}=", f"{new}=")
                yield span, ("pass",)
            case ast.Assign(targets=[target]):
                if not isinstance(target, ast.Name | ast.Tuple) or _is_bound_before(target, node, function):
                    yield span, ("pass",)
            case ast.Expr(value=ast.Call(func=called)):
                if not MESSAGE_CALLS.match(ast.unparse(called)):
                    yield span, ("pass",)
            case ast.Raise() | ast.Break() | ast.Continue():
                yield span, ("pass",)

    def _get_other_value(self, value: ast.expr, function: ast.FunctionDef) -> str:
        """Return another value: two exchanged, the opposite, the negative, or None where that is allowed; else ""."""
        annotation = "" if function.returns is None else ast.unparse(function.returns)
        text = self._get_text(value)
        if isinstance(value, ast.Tuple) and len(value.elts) > 1:
            first, second, *others = map(self._get_text, value.elts)
            return f"({', '.join((second, first, *others))})"
        if isinstance(value, ast.Constant):
            return ""
        if annotation in {"bool", "NDArray[np.bool_]"}:
            return f"{'not ' if annotation == 'bool' else '~'}({text})"
        if NUMBER_TYPES.match(annotation) or not annotation:
            return f"-({text})"
        return "None" if annotation.endswith("| None") else ""

    def _replace_between(self, before: ast.AST, after: ast.AST, old: str, new: str) -> Change:
        """Return the change of an operator between two operands."""
        begin, end = self._get_span(before)[1], self._get_span(after)[0]
        pattern = rb"\s+".join(re.escape(word.encode()) for word in old.split())
        match = re.search(pattern, self.data[begin:end])
        if match is None:  # in an f-string, where Python 3.11 has no exact positions; it is only counted
            return (begin, end), (new,)
        return (begin + match.start(), begin + match.end()), (new,)

    def _get_opening(self, node: ast.UnaryOp, operand: ast.expr) -> str:
        """Return the parentheses that stand between a sign or `not` and its operand."""
        begin, end = self._get_span(node)[0], self._get_span(operand)[0]
        return "(" * self.data[begin:end].count(b"(")

    def _get_span(self, node: ast.AST) -> Span:
        begin = self.line_starts[node.lineno - 1] + node.col_offset
        return begin, self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def _get_text(self, node: ast.AST) -> str:
        return self.data[slice(*self._get_span(node))].decode()


def _list_children(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a node that may be changed."""
    match node:
        case ast.FunctionDef(args=arguments, body=body):
            return () if _is_unmutated(node) else [*arguments.defaults, *filter(None, arguments.kw_defaults), *body]
        case ast.ClassDef(body=body):
            return body
        case ast.AnnAssign(value=value):
            return [value] if value else ()
        case ast.Call(func=called, args=arguments, keywords=keywords):
            values = [keyword.value for keyword in keywords if keyword.arg not in UNMUTATED_KEYWORDS]
            return () if MESSAGE_CALLS.match(ast.unparse(called)) else [called, *arguments, *values]
    left_out = isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and _is_type(node)
    )
    return () if left_out else ast.iter_child_nodes(node)


def _is_unmutated(function: ast.FunctionDef) -> bool:
    """Return whether a function makes text."""
    returns = "" if function.returns is None else ast.unparse(function.returns)
    return function.name in UNMUTATED_METHODS or returns == "str"


def _is_bound_before(target: ast.expr, node: ast.stmt, function: ast.FunctionDef | None) -> bool:
    """Return whether all assigned names have values already, so that the function can run without the assignment."""
    if function is None:
        return False
    bound = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    bound |= {
        name.id
        for name in ast.walk(function)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.lineno < node.lineno
    }
    return all(name.id in bound for name in ast.walk(target) if isinstance(name, ast.Name))


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operation joins or repeats text or lists."""
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _is_type(node: ast.BinOp) -> bool:
    """Return whether an operation is a union of types."""
    return isinstance(node.op, ast.BitOr) and bool(TYPE_NAMES.match(ast.unparse(node.right)))
