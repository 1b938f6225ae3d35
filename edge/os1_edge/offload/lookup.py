"""Prompt lookup: the next tokens of an answer, guessed from what stands in the prompt already. Pure.

A reply repeats facts: after "your exam is" the prompt's own "Your exam is on Friday at nine" most often goes
on the same way. The model then checks all guessed tokens in one pass, which costs hardly more than one token
(apoorvumang/prompt-lookup-decoding). Greedy decoding writes the same text with and without.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_MATCH = 3
"""Last tokens looked for at most; the longest match found is the likeliest to go on the same way."""

FEW, MANY = 3, 7
"""Tokens guessed at once: at first, and after a guess that was right throughout. llama.cpp's kernels take
four rows at a time: reading 4 tokens costs 1.3 times one, reading 5 to 8 twice (measured, 2 threads)."""


def guesses(tokens: Sequence[int], count: int = FEW) -> list[int]:
    """What followed the latest earlier place that ends like ``tokens``; empty without such a place."""
    for length in range(LONGEST_MATCH, 0, -1):
        if len(tokens) <= length:
            continue
        end = tuple(tokens[-length:])
        for start in range(len(tokens) - length - 1, -1, -1):
            if tokens[start] == end[0] and tuple(tokens[start : start + length]) == end:
                return list(tokens[start + length : start + length + count])
    return []
