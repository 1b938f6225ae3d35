"""The OS-1 runtime on the glasses: hear, see, speak, remember, converse.

May import os1_proto and os1_models; never os1_cloud.
"""

import os

# onnxruntime reports its use to its maker from the moment it is imported, unless this is set before. Nothing
# may leave the device, so it is set here, where every import of the edge passes.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.1.0"
