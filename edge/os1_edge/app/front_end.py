"""What the microphone's sound passes first, as the settings want it."""

from __future__ import annotations

from os1_edge.config import Config
from os1_edge.hear.capture import Canceller, Spotter
from os1_edge.hear.echo import canceller
from os1_edge.hear.wake import WakeWord


def front_end(config: Config, *, in_a_room: bool) -> tuple[Canceller | None, Spotter | None]:
    """The echo canceller with what else it does, and the wake word's spotter; ``Os1`` takes both.

    Args:
        config: the settings.
        in_a_room: the microphone hears the speaker. A recording holds no echo of the replies to it.

    Raises:
        NoWakeWord: the wake word of the settings cannot be had here.
    """
    hear = config.hear
    cleaner = None
    if in_a_room or hear.noise_suppression or hear.gain_control:
        cleaner = canceller(
            echo_cancellation=in_a_room and hear.echo_cancellation,
            noise_suppression=hear.noise_suppression,
            gain_control=hear.gain_control,
        )
    return cleaner, WakeWord(hear.wake_word) if hear.wake_word else None
