"""The fault proxy is part of the bench, so that an installed ``os1 bench system`` has it too."""

from os1_edge.bench.proxy import CLEAN, FaultProxy, Toxics, parse, timeline

__all__ = ["CLEAN", "FaultProxy", "Toxics", "parse", "timeline"]
