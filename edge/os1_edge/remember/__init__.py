"""Memory on the device: one encrypted SQLite file, embeddings, recall, events, profile.

Knows no other room; app and converse import it.
"""
