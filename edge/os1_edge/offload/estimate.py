"""What is known of how long things take, and how sure it is. Pure: the times are given.

Round trips follow RFC 6298, with Karn's rule. All durations are seconds, rates are bytes a second.
"""

from __future__ import annotations

from collections import deque

ALPHA, BETA, K = 1 / 8, 1 / 4, 4.0
"""RFC 6298, section 2."""

LONGEST_RTO_S = 60.0
"""RFC 6298 (2.5)."""

NEWEST = 32
"""Samples that a quantile rests on: enough for a p95, few enough to forget a place within minutes."""

HALF_LIFE_S = 60.0
"""After this, half of what was known of a network is unsure again."""

FASTEST = 12_500_000.0
"""Bytes a second above which a rate makes no difference; a short upload would show any."""

LEAST_UPLOAD = 8_000
"""Bytes: smaller ones are over before the link has shown its rate."""


class Rtt:
    """Smoothed round-trip time and its deviation."""

    def __init__(self) -> None:
        self.srtt_s: float | None = None
        self.rttvar_s = 0.0
        self._backed_off = 1.0

    @property
    def rto_s(self) -> float:
        """After this a silent call is held to be lost."""
        if self.srtt_s is None:
            return 1.0
        return min((self.srtt_s + max(K * self.rttvar_s, 0.05)) * self._backed_off, LONGEST_RTO_S)

    def sample(self, seconds: float) -> None:
        """A round trip took ``seconds``. Only of what was asked once: else nobody knows which was answered
        (Karn). So probes are never repeated by gRPC, and questions give no samples."""
        self._backed_off = 1.0
        if self.srtt_s is None:
            self.srtt_s, self.rttvar_s = seconds, seconds / 2
            return
        self.rttvar_s += BETA * (abs(self.srtt_s - seconds) - self.rttvar_s)
        self.srtt_s += ALPHA * (seconds - self.srtt_s)

    def lost(self) -> None:
        """No answer within ``rto_s`` (RFC 6298 (5.5))."""
        self._backed_off = min(self._backed_off * 2, 64.0)

    def at_least(self, seconds: float) -> None:
        """A call that was given up had taken ``seconds`` by then: no sample, but it was not faster."""
        if self.srtt_s is not None and seconds > self.srtt_s:
            self.rttvar_s += BETA * max(seconds - self.srtt_s - self.rttvar_s, 0.0)


class Quantiles:
    """Quantiles of the newest samples; sorted when one comes, so that reading costs nothing."""

    __slots__ = ("_samples", "count", "p10", "p50", "p95")

    def __init__(self, p10: float, p50: float, p95: float) -> None:
        """What is believed before the first sample."""
        self._samples: deque[float] = deque(maxlen=NEWEST)
        self.p10, self.p50, self.p95 = p10, p50, p95
        self.count = 0

    def add(self, value: float) -> None:
        """One more sample. While there are few, the spread is at least a third of the median: luck looks like
        certainty."""
        self._samples.append(value)
        self.count += 1
        ordered = sorted(self._samples)
        last = len(ordered) - 1
        self.p50 = ordered[last // 2] if last % 2 == 0 else (ordered[last // 2] + ordered[last // 2 + 1]) / 2
        self.p10, self.p95 = ordered[round(0.1 * last)], ordered[round(0.95 * last)]
        if last < 8:
            self.p10, self.p95 = min(self.p10, self.p50 * 0.67), max(self.p95, self.p50 * 1.33)


class LocalModel:
    """Seconds to the device's first token: ``a + b * prompt tokens to read + c * pictures``.

    Recursive least squares that forgets: the device gets warm, another program takes a core. DiSCo (ACL 2025)
    found a device's first token linear in the prompt's length, and predictable.
    """

    FORGET = 0.97
    USUAL = (0.1, 0.004, 1.5)
    """Before the first sample: two x86 threads, Qwen 0.5B; pictures are read as several hundred tokens."""

    def __init__(self) -> None:
        self._w = list(self.USUAL)
        self._p = [[0.05, 0.0, 0.0], [0.0, 1e-4, 0.0], [0.0, 0.0, 1.0]]
        self.deviation_s = 0.05

    @property
    def high_s(self) -> float:
        """Added for the 95th percentile: two mean deviations would be that of a normal distribution, but
        a busy device's has a longer tail."""
        return 2.5 * self.deviation_s

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """a, b, c; none is below zero."""
        a, b, c = self._w
        return max(a, 0.0), max(b, 0.0), max(c, 0.0)

    def sample(self, tokens: int, images: int, seconds: float) -> None:
        """A prompt with so many tokens to read had its first token after ``seconds``."""
        x = (1.0, float(tokens), float(images))
        error = seconds - sum(w * v for w, v in zip(self._w, x, strict=True))
        px = [sum(p * v for p, v in zip(row, x, strict=True)) for row in self._p]
        scale = self.FORGET + sum(v * q for v, q in zip(x, px, strict=True))
        gain = [q / scale for q in px]
        self._w = [w + g * error for w, g in zip(self._w, gain, strict=True)]
        # By what is left unexplained: the first samples mostly correct the guess that was made before them.
        rest = abs(seconds - sum(w * v for w, v in zip(self._w, x, strict=True)))
        self.deviation_s += BETA * (rest - self.deviation_s)
        self._p = [
            # Bounded, else what is never excited (pictures) would grow without end by forgetting.
            [min((self._p[i][j] - gain[i] * px[j]) / self.FORGET, 10.0) for j in range(3)]
            for i in range(3)
        ]


class Lateness:
    """By how much first words came later than their predicted median; measured, so the parts' tails need not
    be added up: the sum of p95s overstates that of a sum, and a link that loses packets has no such parts.
    """

    ENOUGH = 5
    """Outcomes from which a tail can be told."""

    def __init__(self) -> None:
        self._newest: deque[float] = deque(maxlen=NEWEST)
        self._inside = 0.9
        self.at_s = float("-inf")
        """When the newest outcome was."""
        self.p90_s: float | None = None
        """None: too few outcomes."""

    @property
    def inside(self) -> float:
        """Share of the newest outcomes below what was predicted as their upper bound."""
        return self._inside

    def outcome(self, now_s: float, late_s: float, *, inside: bool) -> None:
        """A first word came, or had not come, ``late_s`` after its median."""
        self.at_s = now_s
        self._inside += 0.05 * (inside - self._inside)
        self._newest.append(late_s)
        if len(self._newest) >= self.ENOUGH:
            ordered = sorted(self._newest)
            self.p90_s = max(ordered[min(round(0.9 * len(ordered)), len(ordered) - 1)], 0.0)


class PathEstimates:
    """What is known of one network's way to the server."""

    def __init__(self) -> None:
        self.rtt = Rtt()
        self.uplink = Quantiles(15_000.0, 60_000.0, 250_000.0)
        self.lateness: dict[str, Lateness] = {}
        """By task."""
        self.at_s: float | None = None
        """When it was last heard of."""

    def late(self, task: str) -> Lateness:
        """Of questions of one kind."""
        return self.lateness.setdefault(task, Lateness())

    def uploaded(self, size: int, seconds: float) -> None:
        """``size`` bytes went up in ``seconds``, the round trip taken off."""
        if size >= LEAST_UPLOAD:
            self.uplink.add(min(size / max(seconds, 1e-3), FASTEST))

    def unsure(self, now_s: float) -> float:
        """0: just heard of; 1: long ago, or never."""
        return 1.0 if self.at_s is None else 1.0 - 0.5 ** (max(now_s - self.at_s, 0.0) / HALF_LIFE_S)


class Networks:
    """Estimates of the networks that the wearer has been in, the newest last."""

    KEPT = 32
    """A wearer's week of places; beyond that a network is as good as new."""

    def __init__(self) -> None:
        self._known: dict[str, PathEstimates] = {}

    def __len__(self) -> int:
        return len(self._known)

    def at(self, network: str) -> PathEstimates:
        """Those of ``network``, an opaque name; new ones where it is new."""
        found = self._known.pop(network, None) or PathEstimates()
        self._known[network] = found
        while len(self._known) > self.KEPT:
            del self._known[next(iter(self._known))]
        return found
