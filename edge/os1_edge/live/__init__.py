"""The companion on live devices: `os1 run`. Puts microphone, cameras, speaker and power behind `app`; only
the command line imports this."""
