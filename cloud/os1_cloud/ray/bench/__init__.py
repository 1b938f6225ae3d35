"""Measures the server on a Ray cluster with a scripted engine: `python -m os1_cloud.ray.bench --help`.

Nothing of the server imports it. tests/on_ray uses its parts.
"""

from os1_cloud.ray.bench import cluster as cluster  # first: Ray reads the environment when it is imported
