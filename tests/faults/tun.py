"""The packet relay is part of the bench, so that an installed ``os1 bench system`` has it too."""

from os1_edge.bench.tun import FAR, NEAR, Relay, Weather, missing

__all__ = ["FAR", "NEAR", "Relay", "Weather", "missing"]
