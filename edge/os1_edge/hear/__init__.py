"""Hearing: voice activity, the end of a turn, speech recognition.

Knows no other room; app and the command line import it.
"""
