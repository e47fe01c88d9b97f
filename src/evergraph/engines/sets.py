"""Facts by relation as sets: what several steps put together."""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key

Runs = dict[Key, Run]


def runs_of(relations: Mapping[Key, Relation]) -> Runs:
    return {key: Run(r.base.arrays, r.arity, r.rows()) for key, r in relations.items()}


def join(relations: dict[Key, Relation], runs: Mapping[Key, Run]) -> Runs:
    """Add what is not there yet; returns it."""
    out = {key: run.without(relations.get(key)) for key, run in runs.items()}
    out = {key: run for key, run in out.items() if len(run)}
    for key, run in out.items():
        known = relations.get(key)
        relations[key] = Relation(run) if known is None else known.add(run)
    return out


def join_runs(runs: Runs, more: Mapping[Key, Run]) -> None:
    """Add rows to runs."""
    for key, run in more.items():
        runs[key] = runs[key].merge(run.without(runs[key])) if key in runs else run


def with_runs(relations: Mapping[Key, Relation], more: Mapping[Key, Run]) -> dict[Key, Relation]:
    """Relations and rows that they do not have."""
    out = dict(relations)
    for key, run in more.items():
        out[key] = out[key].add(run) if key in out else Relation(run)
    return out
