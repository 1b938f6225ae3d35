"""Measures the server on a Ray cluster with a scripted engine: `python -m os1_cloud.ray.bench --help`.

Nothing of the server imports it. tests/ray uses its `cluster`.
"""
