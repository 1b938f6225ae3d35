"""The router that deployments name. Serve sends what is in this module to front doors as it is; so each runs
what its own release has in routing."""

from __future__ import annotations

from os1_cloud.ray import routing


class Router(routing.Router):
    """See there."""
