"""What the wearer chose on their page: how long memories are kept, and what may leave the device. Kept in the
memory itself, and above the settings file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from os1_edge.remember.store import Store

KEY = "choices"

Days = Annotated[int, Field(ge=1, le=36_500)] | None
LongDays = Annotated[int, Field(ge=2, le=36_500)] | None


class Choices(BaseModel):
    """The wearer's choices; what is not named is as the settings say."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    keep_turns_days: Days = None
    keep_contexts_days: LongDays = None
    keep_events_days: LongDays = None
    keep_summaries_days: LongDays = None
    share_text: bool = True
    """The offload server may be asked with what was said."""
    share_pictures: bool = False
    """The offload server may be shown pictures, with faces blurred."""


def load_choices(store: Store) -> Choices | None:
    """The choices; ``None`` where none were made, or what is kept is none of ours."""
    kept = store.meta(KEY)
    if kept is None:
        return None
    try:
        return Choices.model_validate_json(kept)
    except ValidationError:
        return None


def save_choices(store: Store, choices: Choices) -> None:
    """Keeps ``choices`` in place of the ones before."""
    store.set_meta(KEY, choices.model_dump_json())
