"""Keeps the fork server alive when all processes of a command are told to stop, as service managers do it.

It alone knows how child processes end, so it has to outlive them; it goes when the supervisor does.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
