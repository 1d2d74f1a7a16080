"""How long the fork server lives; what it imports first.

It alone knows how child processes end, so it has to outlive them: signals that terminals and service managers
send to all processes of a command are not for it. By itself it notices that its command has ended only when
everything is imported; until then the kernel ends it.
"""

from __future__ import annotations

import os
import signal

from engine.pipeline.parent_death import COMMAND_PROCESS, die_with_parent
from engine.pipeline.stop_signals import STOP_SIGNALS

for number in STOP_SIGNALS:
    signal.signal(number, signal.SIG_IGN)
# They were blocked when it was started, so that none came before this.
signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

die_with_parent()
if os.environ.get(COMMAND_PROCESS) != str(os.getppid()):
    raise SystemExit("the command has ended")
