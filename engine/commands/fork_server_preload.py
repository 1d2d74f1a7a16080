"""Everything that child processes need, made ready once in the server process that they are forked from.

Modules are imported and kernels loaded (or compiled, the first time), so that a child starts in milliseconds
and no kernel is compiled in the middle of a stream.
"""

from __future__ import annotations

import contextlib
import gc

# Every child runs the command's script up to its main function, which imports this one.
import engine.__main__
import engine.decode.process
import engine.net.process
import engine.sink.process  # noqa: F401
from engine.commands.compile_kernels import compile_kernels
from engine.errors import EngineError
from engine.pipeline.parent_death import outlive_parent

with contextlib.suppress(EngineError):
    compile_kernels()
# What all of them share is no garbage: looking through it again and again would take time in every child, and
# copy the pages that it stands in.
gc.freeze()
# From here on the fork server waits for the end of its command itself, and lets children finish.
outlive_parent()
