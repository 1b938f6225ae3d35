"""Replays a recorded session through the real pipeline and writes down what happened.

May import app and every room; nothing imports it but the command line.
"""
