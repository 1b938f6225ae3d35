"""What a client is told when an engine fails. Pure.

job and speech import it.
"""

from __future__ import annotations

from os1_cloud.admission import Refused
from os1_cloud.engines import EngineBusy, EngineError, EngineLost


def refused_by(failure: EngineError) -> Refused:
    """The refusal that a failed engine means: whether, and when, the same question may be asked again."""
    if isinstance(failure, EngineBusy):
        return Refused("queue_full", str(failure), failure.retry_after_s)
    if isinstance(failure, EngineLost):
        return Refused("engine_lost", str(failure), failure.retry_after_s)
    return Refused("engine_failed", str(failure))
