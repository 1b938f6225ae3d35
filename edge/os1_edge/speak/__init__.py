"""Speaking: clauses out of a token stream, speech synthesis, playback.

Knows no other room; app and the command line import it.
"""
