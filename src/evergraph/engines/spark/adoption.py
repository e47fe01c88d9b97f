"""What shards must learn when other rules take over under which the same follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evergraph.engines.spark.job import ALL, EXPLICIT
from evergraph.engines.spark.placement import Placement, place
from evergraph.plan.compile import Plan, helpers_of, same_instances
from evergraph.plan.model import Key, is_parameter
from evergraph.terms import Ids

if TYPE_CHECKING:
    from evergraph.engines.spark.engine import SparkEngine


@dataclass(frozen=True, slots=True)
class Adoption:
    rows: dict[str, list[Ids]]
    """Of parameter relations that the shards do not know."""
    helpers: frozenset[Key]
    """Helper relations that they do not have."""
    drop: frozenset[Key]
    """Relations to forget: other rules have used their names since they were last read."""
    unused: frozenset[Key]
    """Relations that can be forgotten when there is a superstep anyway."""
    again: frozenset[Key]
    """Relations that are wanted at more shards."""
    named: bool
    """Whether rules name other classes, of which shards have to say whether there are instances."""
    placement: Placement
    """Copies stay where they are: what is everywhere once is so for good."""
    same: bool
    """Whether the rules that were in force are in force as they are."""

    @property
    def needed(self) -> bool:
        return bool(self.rows or self.helpers or self.drop or self.again or self.named)

    @staticmethod
    def of(engine: SparkEngine, old: Plan) -> Adoption:
        """What the engine's new plan asks for. Cost: the compiled rules, and the rows of new parameter relations."""
        plan, state = engine.plan, engine.state
        held = {key for what in (ALL, EXPLICIT) for key, count in state.total(what).items() if count}
        hidden = {key for key in held if is_parameter(key)}
        atoms = (atom for rules in plan.strata for rule in rules.rules for atom in (rule.head, *rule.body))
        mentioned = {atom.relation for atom in atoms if is_parameter(atom.relation)} | plan.parameters.keys()
        unused = engine.unused | (hidden - mentioned)
        drop = unused & mentioned
        rows = {name: made() for name, made in plan.parameters.items() if name not in hidden or name in drop}
        rows = {name: columns for name, columns in rows.items() if not columns or len(columns[0])}
        helpers = (helpers_of(plan) - helpers_of(old)) | (helpers_of(plan) & drop)
        placement = _wider(state.placement, place(engine.shards, plan.type_id, engine.local))
        again = {key for key in held if placement.is_replicated(key) and not state.placement.is_replicated(key)}
        if placement.classes != state.placement.classes and plan.type_id in held:
            again.add(plan.type_id)
        classes = [frozenset().union(*(rules.classes for rules in one.strata)) for one in (old, plan)]
        named = not classes[1] <= classes[0]
        needed = rows or helpers or drop or again or named
        return Adoption(
            rows,
            frozenset(helpers),
            frozenset(unused if needed else drop),
            frozenset() if needed else frozenset(unused),
            frozenset(again),
            named,
            placement,
            same_instances(old, plan, held),
        )


def _wider(old: Placement, new: Placement) -> Placement:
    return replace(
        old,
        replicated=old.replicated | new.replicated,
        classes=old.classes | new.classes,
        everywhere=old.everywhere or new.everywhere,
    )
