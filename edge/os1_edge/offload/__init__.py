"""Where language is computed: here or on a server, within a latency budget.

Knows no faculty; converse and app import it.
"""
