"""Measures the server with a scripted engine: the serving, not a model. `python -m os1_cloud.bench --help`.

Nothing of the server imports it.
"""
