"""The router as the wearer's settings have it."""

from __future__ import annotations

import random

from os1_edge.clock import Clock
from os1_edge.config import Offload
from os1_edge.offload.budget import budgets
from os1_edge.offload.engine import LanguageEngine
from os1_edge.offload.far import Far
from os1_edge.offload.journal import Journal
from os1_edge.offload.ladder import Reencode
from os1_edge.offload.route import Rules
from os1_edge.offload.router import Router


def make_router(
    offload: Offload,
    near: LanguageEngine,
    far: Far | None,
    clock: Clock,
    *,
    reencode: Reencode | None = None,
    journal: Journal | None = None,
    chance: random.Random | None = None,
) -> Router:
    """See ``Router``."""
    return Router(
        near,
        far,
        clock,
        rules_of(offload),
        budgets(offload.first_token_s),
        metered=offload.metered_interfaces,
        reencode=reencode,
        journal=journal,
        chance=chance,
    )


def rules_of(offload: Offload) -> Rules:
    """What the wearer allows."""
    return Rules(offload.policy, offload.metered, offload.pictures, frozenset(offload.local_only))
