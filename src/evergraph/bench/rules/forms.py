"""36 forms of rules that RDFS cannot say, as description logic programs have them (Grosof et al., WWW 2003; Volz 2004).

In a form, `c` is a class low in the hierarchy and `C` one above, `p` a property and `P` one above, `i` an individual, each
occurrence another one; `same` forms have one property in place of all, which makes an inverse symmetric and a chain transitive.
What a rule derives stands high and what it asks for low, so that rules build on each other without one large cycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable

FORMS = {
    "intersection of two": "C[?x] :- c[?x], c[?x] .",
    "intersection of three": "C[?x] :- c[?x], c[?x], c[?x] .",
    "existential on the left": "C[?x] :- p[?x, ?y], c[?y] .",
    "existential and class": "C[?x] :- c[?x], p[?x, ?y], c[?y] .",
    "two existentials": "C[?x] :- p[?x, ?y], p[?x, ?z], c[?y], c[?z] .",
    "nested existential": "C[?x] :- p[?x, ?y], p[?y, ?z], c[?z] .",
    "existential of properties": "C[?x] :- p[?x, ?y], p[?y, ?z] .",
    "universal on the right": "C[?y] :- c[?x], p[?x, ?y] .",
    "universal for a class": "C[?y] :- c[?x], p[?x, ?y], c[?y] .",
    "nested universal": "C[?z] :- c[?x], p[?x, ?y], p[?y, ?z] .",
    "has-value on the left": "C[?x] :- p[?x, i] .",
    "has-value and class": "C[?x] :- c[?x], p[?x, i] .",
    "nested has-value": "C[?x] :- c[?x], p[?x, ?y], p[?y, i] .",
    "has-value on the right": "P[?x, i] :- c[?x] .",
    "has-value to has-value": "P[?x, i] :- p[?x, i] .",
    "has-value of a value's class": "P[?x, i] :- p[?x, ?y], c[?y] .",
    "self on the left": "C[?x] :- p[?x, ?x] .",
    "self on the right": "P[?x, ?x] :- c[?x] .",
    "inverse": "P[?y, ?x] :- p[?x, ?y] .",
    "inverse for a class": "P[?y, ?x] :- p[?x, ?y], c[?x] .",
    "mutual": "C[?x] :- p[?x, ?y], p[?y, ?x] .",
    "chain of two": "P[?x, ?z] :- p[?x, ?y], p[?y, ?z] .",
    "chain of three": "P[?x, ?w] :- p[?x, ?y], p[?y, ?z], p[?z, ?w] .",
    "chain through a class": "P[?x, ?z] :- p[?x, ?y], c[?y], p[?y, ?z] .",
    "same subject": "P[?y, ?z] :- p[?x, ?y], p[?x, ?z] .",
    "same object": "P[?x, ?z] :- p[?x, ?y], p[?z, ?y] .",
    "properties together": "P[?x, ?y] :- p[?x, ?y], p[?x, ?y] .",
    "property of a class": "P[?x, ?y] :- p[?x, ?y], c[?x] .",
    "property into a class": "P[?x, ?y] :- p[?x, ?y], c[?y] .",
    "property between classes": "P[?x, ?y] :- p[?x, ?y], c[?x], c[?y] .",
    "another": "C[?x] :- p[?x, ?y], ?x != ?y .",
    "into a relation": "linked(?x, ?y) :- p[?x, ?y], c[?x] .",
    "out of a relation": "C[?x] :- linked(?x, ?y), c[?y] .",
    "into a relation of three": "via(?x, ?y, ?z) :- p[?x, ?y], p[?y, ?z] .",
    "out of a relation of three": "P[?x, ?z] :- via(?x, ?y, ?z), c[?y] .",
    "into a relation with a value": "marked(?x, i) :- c[?x] .",
}
SAME = ("inverse", "chain of two")
"""Forms that are at times about one property: symmetric, transitive."""

_SYMBOL = re.compile(r"\b[cCpP](?=\[)|\bi\b")


def fill(name: str, draw: Callable[[str], str], same: bool = False) -> str:
    """A rule of a form: `draw` gives a name for a symbol.

    >>> fill("inverse", {"p": "knows", "P": "knownBy"}.__getitem__)
    ':knownBy[?y, ?x] :- :knows[?x, ?y] .'
    """
    one = draw("p") if same else ""
    return _SYMBOL.sub(lambda found: f":{one or draw(found.group())}", FORMS[name])
