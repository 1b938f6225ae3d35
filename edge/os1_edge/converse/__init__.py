"""The dialogue: real-time context, recall, prompt, reply.

Uses remember and offload; app imports it.
"""
