"""The companion's own web page: a browser as the glasses, and the wearer's review of what is remembered.
Served by the runtime itself; only the command line imports this."""
