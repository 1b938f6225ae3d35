"""The OS-1 runtime on the glasses: hear, see, speak, remember, converse.

May import os1_proto and os1_models; never os1_cloud.
"""

__version__ = "0.1.0"
