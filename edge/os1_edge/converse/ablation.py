"""What a reply may rest on, for the evaluation: parts are left out of the prompt to see what they bring
(paper 4.1.1, baseline methods). Pure."""

from __future__ import annotations

from typing import Literal

Part = Literal["profile", "history", "context"]
"""What the wearer is like; what was said and done before this conversation; where they are, what they see and
do, and when."""

Ablation = Literal["none", "without profile", "without profile and history", "without context"]
"""The paper's w/o P, w/o PH and w/o PHR; "none" leaves nothing out."""

LEAVES_OUT: dict[str, frozenset[Part]] = {
    "none": frozenset(),
    "without profile": frozenset({"profile"}),
    "without profile and history": frozenset({"profile", "history"}),
    "without context": frozenset({"profile", "history", "context"}),
}
