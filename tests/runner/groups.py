"""Child processes of a test run, each in a process group of its own, which ends with the run.

The groups stay in the run's session. The kernel gives each session the same share of the CPUs (sched_autogroup_enabled): in one of its own
a group of lowest priority would have half of them.
"""
import contextlib
import os
import signal
import sys
import time
import traceback

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_S = 10  # from SIGTERM to SIGKILL


def on_ending(handler):
    """Sets the handler of signals that end a run; one that the caller ignores, as nohup does, stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def unimportant():
    """Gives this process, and all that it starts, only what others leave of the CPUs."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        os.nice(19)


class Group:
    """A child process that runs a function, with output as standard output and error."""
    started = []  # groups that were not ended yet

    def __init__(self, output, function, *arguments):
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        self.id = os.fork()
        if self.id == 0:
            self._child(output, function, arguments)
        with contextlib.suppress(OSError):
            os.setpgid(self.id, self.id)  # parent and child both set it, because either may run first
        self.started.append(self)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    @staticmethod
    def _child(output, function, arguments):
        status = 1
        try:
            os.setpgid(0, 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            on_ending(signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            function(*arguments)
            status = 0
        except BaseException:  # no code of the parent may run in the child
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)

    def works(self):
        """True until the function has ended. The child's id is not reused before end()."""
        return os.waitid(os.P_PID, self.id, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None

    def wait(self):
        os.waitid(os.P_PID, self.id, os.WEXITED | os.WNOWAIT)

    def members(self):
        """Ids of the processes in the group that have not ended."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                    state, _, group = file.read().rpartition(") ")[2].split()[:3]
                if int(group) == self.id and state not in "ZX":
                    found.append(int(name))
        return found

    def lift(self):
        """Gives the processes of an unimportant group the normal scheduling policy. Policies that processes chose themselves stay."""
        for process in self.members():
            with contextlib.suppress(OSError):
                if os.sched_getscheduler(process) == os.SCHED_IDLE:
                    os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0))

    def end(self):
        """Ends all processes that are left in the group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + END_S
            if self.members():
                with contextlib.suppress(OSError):
                    os.killpg(self.id, number)
            while self.members() and time.monotonic() < deadline:
                time.sleep(0.05)
        os.waitpid(self.id, os.WNOHANG)
        self.started.remove(self)
