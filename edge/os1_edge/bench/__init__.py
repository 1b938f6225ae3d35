"""Benchmarks: what OS-1 promises, measured, beside a plain way of doing the same.

May import every room; only the command line imports it.
"""
