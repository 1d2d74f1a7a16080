"""Everything that child processes import, imported once in the server process that they are forked from."""

from __future__ import annotations

import engine.decode.process
import engine.net.process
import engine.sink.process  # noqa: F401
