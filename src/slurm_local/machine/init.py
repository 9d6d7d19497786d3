"""The first process of a cluster's namespaces: it waits for the word to live, then reaps orphans for ever.

Run as a plain file without the package around it, so it starts at once and stays small. When it is killed,
the kernel ends every other process of the cluster and takes the mounts and network devices along.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    # The starter dies before it has written down that we exist: then nobody could ever end us, so we end now.
    if sys.stdin.readline() != "live\n":
        sys.exit(1)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        signal.sigwait({signal.SIGCHLD})


if __name__ == "__main__":
    main()
