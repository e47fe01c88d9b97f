"""Strata: the order in which relations must be settled so that negation means what it says.

Relations are taken as *patterns*: a named relation, or triples with a given predicate (with `rdf:type`, a given class);
a variable there matches every pattern, so a rule that writes any predicate comes before whoever negates one.
A program is stratified when no pattern depends on its own negation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from evergraph.rules.model import TRIPLE, TYPE, Atom, Negation, Program, Rule, Variable

Pattern = tuple[str, str | None, str | None]
"""(relation, predicate or None for any, class or None for any)"""

Node = TypeVar("Node", bound=Hashable)


def pattern(atom: Atom) -> Pattern:
    if atom.relation != TRIPLE:
        return (atom.relation, None, None)
    _, predicate, value = atom.terms
    if isinstance(predicate, Variable):
        return (TRIPLE, None, None)
    if predicate == TYPE and not isinstance(value, Variable):
        return (TRIPLE, predicate, value)
    return (TRIPLE, predicate, None)


def stratify(program: Program) -> list[list[Rule]]:
    """The rules in strata, lowest first; assumes that `negative_cycle` found none. Cost: that of `levels`."""
    level = levels(program)
    strata: dict[int, list[Rule]] = {}
    for rule in program.rules:
        strata.setdefault(level.get(pattern(rule.head), 0) if level else 0, []).append(rule)
    return [strata[i] for i in sorted(strata)]


def levels(program: Program) -> dict[Pattern, int]:
    """The stratum of each pattern that a head has, counted from 0 without gaps; none where nothing is negated.

    Assumes that `negative_cycle` found none. Cost: linear in the program, and in the pairs of patterns that overlap.
    """
    if not any(isinstance(item, Negation) for rule in program.rules for item in rule.body):
        return {}
    edges, _ = _dependencies(program)
    level: dict[Pattern, int] = {}
    for component in strongly_connected({n: [m for m, _ in out] for n, out in edges.items()}):
        below = 0
        for node in component:
            for other, negative in edges[node]:
                if other not in component:
                    below = max(below, level[other] + negative)
        for node in component:
            level[node] = below
    heads = {pattern(rule.head) for rule in program.rules}
    order = {raw: number for number, raw in enumerate(sorted({level[head] for head in heads}))}
    return {head: order[level[head]] for head in heads}


def negative_cycle(program: Program) -> tuple[Rule, list[str]] | None:
    """A rule whose negated atom depends on its head, and the cycle as it is shown to the user; None if there is none."""
    if not any(rule.negations for rule in program.rules):
        return None
    edges, owner = _dependencies(program)
    plain = {n: [m for m, _ in out] for n, out in edges.items()}
    for component in strongly_connected(plain):
        for node in component:
            for other, negative in edges[node]:
                if negative and other in component:
                    back = _path(plain, other, node, set(component))
                    path = [_show(node), f"NOT {_show(other)}", *(_show(n) for n in back[1:])]
                    return owner[node, other], path
    return None


Edges = dict[Pattern, list[tuple[Pattern, bool]]]


def _dependencies(program: Program) -> tuple[Edges, dict[tuple[Pattern, Pattern], Rule]]:
    """Head pattern → (body pattern, negated?), and body pattern → every head pattern that overlaps with it."""
    edges: Edges = {}
    owner: dict[tuple[Pattern, Pattern], Rule] = {}
    for rule in program.rules:
        head = pattern(rule.head)
        out = edges.setdefault(head, [])
        for atom in rule.atoms:
            out.append((pattern(atom), False))
        for atom in rule.negations:
            out.append((pattern(atom), True))
            owner.setdefault((head, pattern(atom)), rule)
    bodies = {body for out in edges.values() for body, _ in out}
    heads = set(edges)
    narrower: dict[Pattern, list[Pattern]] = {}
    for head in heads:
        for wider in _wider(head):
            narrower.setdefault(wider, []).append(head)
    for body in bodies:
        overlap = {*narrower.get(body, ()), *_wider(body) & heads} - {body}
        edges.setdefault(body, []).extend((head, False) for head in sorted(overlap, key=str))
    return edges, owner


def _wider(pattern: Pattern) -> set[Pattern]:
    """The pattern, and those that match all that it does. Two patterns overlap if one is wider than the other."""
    relation, predicate, _ = pattern
    return {pattern, (relation, predicate, None), (relation, None, None)}


def strongly_connected(edges: Mapping[Node, Iterable[Node]]) -> list[set[Node]]:
    """Tarjan's components, each after all it points to. Cost: linear in nodes and edges; no recursion."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    out: list[set[Node]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(edges.get(child, ()))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: set[Node] = set()
                    while node not in component:
                        component.add(top := stack.pop())
                        on_stack.discard(top)
                    out.append(component)
    return out


def _path(edges: Mapping[Pattern, list[Pattern]], start: Pattern, goal: Pattern, inside: set[Pattern]) -> list[Pattern]:
    """A shortest path from start to goal within a component."""
    came: dict[Pattern, Pattern] = {}
    frontier = [start]
    while goal not in came and start != goal:
        reached = []
        for node in frontier:
            for other in edges[node]:
                if other in inside and other not in came and other != start:
                    came[other] = node
                    reached.append(other)
        frontier = reached
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _show(node: Pattern) -> str:
    name, predicate, value = node
    if name != TRIPLE:
        return name
    return f"[?, {predicate or '?'}, {value or '?'}]"


def show_atom(atom: Atom) -> str:
    """An atom for a message: without prefixes."""
    if atom.relation == TRIPLE:
        return f"[{', '.join(map(str, atom.terms))}]"
    return f"{atom.relation}({', '.join(map(str, atom.terms))})"
