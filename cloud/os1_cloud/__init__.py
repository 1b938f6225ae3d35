"""The offload server that an operator deploys for many wearers.

May import os1_proto and os1_models; never os1_edge.
"""

__version__ = "0.1.0"
