"""``os1 chat``: the companion at a terminal, with typed words for speech.

The runtime is the same one (``app.Os1``); only ears and mouth are replaced. Nobody imports this but the
command line.
"""
