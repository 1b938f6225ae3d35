"""What the wearer sees: image files in, named objects, a one-line scene and a guess of the place out.
A faculty: it knows nothing of hear, speak or remember; only os1_edge.app and os1_edge.converse import it."""
