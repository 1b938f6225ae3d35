"""Microphones, cameras, speakers and power: live, or replayed from a recorded session.

Knows no other room; only app and replay import it.
"""
