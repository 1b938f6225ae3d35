"""What the wearer's page shows and changes: the memory as days, conversations and a profile, and the
companion's numbers. Knows `remember`; `web` serves it."""
