"""The same server on several machines: engines behind it are deployments of Ray Serve.

The front door (auth, admission, budgets, health) stays `os1_cloud.server`; `engine` asks, `replica` answers
on another machine, `pool` knows how many there are, `deploy` makes deployments of settings. Ray Serve places,
routes, scales and restarts. Needs the extra `ray`; only cli imports it, and only for `os1 serve --ray`.
"""
