"""Loads everything that child processes need, once, in the fork server.

Importing this module imports the children's modules and loads the kernels (or compiles them, the first time),
so that a child starts in milliseconds and no kernel is compiled in the middle of a stream.
"""

from __future__ import annotations

import contextlib
import gc

# Every child imports the command's script, which imports this module.
import engine.__main__
import engine.decode.process
import engine.net.process
import engine.sink.process  # noqa: F401
from engine.commands.compile_kernels import compile_kernels
from engine.errors import EngineError
from engine.pipeline.parent_death import outlive_parent

# The shared objects are never garbage: collections in the children would take time to visit them, and would
# copy their memory pages.
gc.freeze()
gc.enable()
with contextlib.suppress(EngineError):
    compile_kernels()
gc.freeze()
# From here on the fork server notices the end of its command, and lets its children finish first.
outlive_parent()
