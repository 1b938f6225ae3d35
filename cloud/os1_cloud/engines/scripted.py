"""An engine that writes words at a pace and knows nothing: measures and tests the server, not a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from os1_cloud.engines import Finished, Piece, Prompt


class Scripted:
    """`first_s` until the first word, then one each `token_s`, as many as are asked for."""

    def __init__(
        self,
        first_s: float = 0.02,
        token_s: float = 0.02,
        slots: int = 1,
        name: str = "scripted",
        *,
        stamped: bool = False,
    ) -> None:
        """Times are seconds of the event loop.

        Args:
            first_s, token_s: see the class.
            slots: prompts at a time.
            name: see `Engine`.
            stamped: whether a word is the time at which it was written, in seconds of the machine's clock
                (`time.monotonic`), and not its number.
        """
        self.name, self.context_tokens, self.slots, self.vision = name, 1_000_000, slots, False
        self.at_work = self.written = 0
        self._first_s, self._token_s, self._stamped = first_s, token_s, stamped

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`. Words are due at fixed times, so a late one does not delay the next."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._first_s
        self.at_work += 1
        try:
            for number in range(prompt.max_tokens):
                if (wait := due - loop.time()) > 0:
                    await asyncio.sleep(wait)
                self.written += 1
                yield Piece(f"{time.monotonic():.6f} " if self._stamped else f"{number} ")
                due += self._token_s
            yield Finished("length", 10, prompt.max_tokens)
        finally:
            self.at_work -= 1

    def close(self) -> None:
        """Nothing to free."""
