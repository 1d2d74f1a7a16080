"""The lifetime of the fork server, which imports this module first.

Only the fork server learns the exit codes of child processes, so it has to outlive them: it ignores the
signals that terminals and service managers send to all processes of a command. It notices the end of its
command only after its imports; until then, the operating system's kernel kills it when the command ends.
"""

from __future__ import annotations

import gc
import os
import signal

from engine.pipeline.parent_death import COMMAND_PROCESS, die_with_parent
from engine.pipeline.stop_signals import SENT_TO_ALL

# Its children inherit that; they set up SIGINT and SIGTERM again.
for number in SENT_TO_ALL:
    signal.signal(number, signal.SIG_IGN)
# They were blocked when this process was started, so that none was delivered before this line.
signal.pthread_sigmask(signal.SIG_UNBLOCK, SENT_TO_ALL)

# Imports leave next to no garbage, and collections during them took 8 % of the fork server's time: they begin
# once everything is imported.
gc.disable()

die_with_parent()
if os.environ.get(COMMAND_PROCESS) != str(os.getppid()):
    # Without a word: the command has said its own last one.
    raise SystemExit(1)
