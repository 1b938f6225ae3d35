"""A simulated room with a small loudspeaker and a microphone: what is played comes back as an echo.

The response is made by the image-source method (Allen and Berkley 1979) in a shoebox, its tail by noise that
decays to -60 dB in ``rt60_s``. The loudspeaker is small and driven hard: no bass, and a tanh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from os1_edge.events import RATE, Samples

SOUND_M_S = 343.0


@dataclass(frozen=True)
class Room:
    """Where the echo comes from; the same seed gives the same room."""

    delay_ms: float = 40.0
    """Until the microphone hears what was played: buffers, converters, and the way through the air."""
    rt60_s: float = 0.3
    echo_db: float = -12.0
    """The echo's level, relative to what was played."""
    drive: float = 2.0
    """How far the loudspeaker is driven into its tanh, at full scale; 0 is a linear one."""
    noise_db: float = -65.0
    """The microphone's own noise, dB of full scale."""
    seed: int = 1

    def response(self) -> Samples:
        """The way from loudspeaker to microphone; energy 1, without the delay."""
        rng = np.random.default_rng(self.seed)
        size = rng.uniform((3.0, 2.5, 2.4), (6.0, 5.0, 3.2))
        speaker = rng.uniform(0.3, 0.7, 3) * size
        microphone = speaker + np.array([0.08, 0.05, 0.02])  # temple and nose of a pair of glasses
        reflects = float(np.exp(-6.9 * size.mean() / (SOUND_M_S * self.rt60_s)))
        length = int(self.rt60_s * RATE)
        out = np.zeros(length)
        orders = np.arange(-2, 3)
        for n in np.array(np.meshgrid(orders, orders, orders)).reshape(3, -1).T:
            for flip in np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T:
                image = 2 * n * size + np.where(flip, -speaker, speaker)
                metres = float(np.linalg.norm(image - microphone))
                bounces = int(np.abs(2 * n - flip).sum())
                if (at := round(metres / SOUND_M_S * RATE)) < length:
                    out[at] += reflects**bounces / max(metres, 0.05)
        t = np.arange(length) / RATE
        tail = rng.standard_normal(length) * np.exp(-6.9 * t / self.rt60_s) * (t > 0.02)
        out = out / np.sqrt((out**2).sum()) + 0.5 * tail / np.sqrt((tail**2).sum())
        return np.asarray(out / np.sqrt((out**2).sum()), np.float32)

    def echo(self, played: Samples) -> Samples:
        """What the microphone hears of ``played`` (mono float32, 16 kHz); as long as ``played``, delayed."""
        sound = np.tanh(self.drive * played) / self.drive if self.drive else played
        sound = np.diff(sound, prepend=np.float32(0)) * 0.5 + 0.5 * sound  # little bass
        size = 1 << int(np.ceil(np.log2(len(sound) + RATE)))
        heard = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(self.response(), size), size)
        late = np.concatenate([np.zeros(round(self.delay_ms * RATE / 1000)), heard])[: len(played)]
        want = loudness(played) * 10 ** (self.echo_db / 20)
        return np.asarray(late * want / max(loudness(late), 1e-9), np.float32)

    def noise(self, n: int) -> Samples:
        """The microphone's own noise."""
        rng = np.random.default_rng(self.seed + 1000)
        return (10 ** (self.noise_db / 20) * rng.standard_normal(n)).astype(np.float32)


def loudness(samples: Samples) -> float:
    """Root mean square of the parts that are not silent."""
    loud = samples[np.abs(samples) > 1e-3]
    return float(np.sqrt(np.mean(np.square(loud)))) if len(loud) else 0.0
