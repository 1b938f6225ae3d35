"""The messages and services that glasses and server share, generated from proto/os1 by scripts/gen-proto.

Imports nothing of ours; os1_edge and os1_cloud import it.
"""
