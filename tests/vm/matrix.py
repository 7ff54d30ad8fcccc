"""matrix [-a] [-k] [-j COUNT] [--allow-skip KIND]... [GUEST...]: boots the guests of tests/vm/guests, COUNT side by side (default: 2;
each needs one core and 3 GB), and runs the live tests in them. GUEST is KERNEL or KERNEL/ROOT, such as 6.1 or 5.10/bullseye; all
if none. -a: all configurations of each, which takes hours.

The output of each guest is shown when it has ended. The last line is the totals: N passed, N failed, N skipped.

The guests' results, what tsnap said of itself in them, are compared with packaging/compat.md; -k, with -a: they are written there instead.
Rows of guests that did not run stay as they are.

A kernel or a tree that can't be had fails the run, unless --allow-skip vm-KERNEL, tree-SUITE or all is given; an old kernel that was not
provided is skipped. Trees are made and built by tests/tree/tree-run.

Environment: TSNAP_VM_CACHE and TSNAP_OLD_KERNELS, see kernel-fetch; TSNAP_VM_BUILD, the build directory for guests on this machine's root
(build-test/gcc); TSNAP_VM_TREE_BUILD, that in trees (/build/gcc).
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "runner"))

import groups  # noqa: E402  pylint: disable=wrong-import-position
from steps import RESULT, TOP, Failed, Steps, call, output_to, say, text_of  # noqa: E402  pylint: disable=wrong-import-position

CACHE = os.environ.get("TSNAP_VM_CACHE") or "/var/cache/tsnap-vm"
BUILD = os.environ.get("TSNAP_VM_BUILD") or os.path.join(TOP, "build-test/gcc")
TREE_BUILD = os.environ.get("TSNAP_VM_TREE_BUILD") or "/build/gcc"
LOGS = os.path.join(TOP, "build-test/logs/vm")
BOOT, FETCH, GUEST, GUESTS, COMPAT = (os.path.join(HERE, name) for name in ("boot", "kernel-fetch", "guest", "guests", "compat.py"))
TABLE = os.path.join(TOP, "packaging/compat.md")
VERDICTS = os.path.join(TOP, "tests/verdicts.py")
THIS = "-"  # the root of guests on this machine's files
LIMIT_S, LIMIT_ALL_S = 1800, 10800  # 4.9 alone runs the tests of every option three times
NOT_GIVEN = 77  # kernel-fetch's exit status for an old kernel that was not provided
# bash script: runs the program $3 with the option $4 and a file, $5 outside the tree, in the tree $2; $1 is this folder
IN_TREE = """. "$1/../tree/private.sh"
tree_mount "$2"
: >"$2/tmp/file"
mount --bind "$5" "$2/tmp/file"
exec chroot "$2" "$3" "$4" /tmp/file"""


class Options(typing.NamedTuple):
    """Options of the command line."""
    all: bool = False
    keep: bool = False
    jobs: int = 2
    allow_skip: typing.Sequence[str] = ()
    guests: typing.Sequence[str] = ()


class Guest(typing.NamedTuple):
    """An emulated machine with the tests to run in it."""
    kernel: str
    root: str
    configurations: typing.Sequence[str]

    @property
    def name(self):
        return "%s-%s" % (self.kernel, self.root)


def arguments(argv):
    words, given = list(argv), {"-a": [], "-k": [], "-j": [2], "--allow-skip": []}
    try:
        while words and words[0].startswith("-"):
            name = words.pop(0)
            given[name].append(words.pop(0) if name in ("-j", "--allow-skip") else True)
        options = Options(bool(given["-a"]), bool(given["-k"]), int(given["-j"][-1]), given["--allow-skip"], words)
        if options.jobs < 1 or (options.keep and not options.all):
            raise ValueError
    except (IndexError, KeyError, ValueError):
        say("usage: matrix [-a] [-k] [-j COUNT] [--allow-skip KIND]... [GUEST...]")
        sys.exit(2)
    return options


# --- which guests

def guests_read(text):
    """(guest with the configurations before |, configurations after |) of each row."""
    for line in text.splitlines():
        before, _, after = line.partition("|")
        if line.strip() and not line.startswith("#"):
            kernel, root, *configurations = before.split()
            yield Guest(kernel, root, configurations), after.split()


def guests_list(text, options, can_be_had):
    """The requested guests that have configurations to run; can_be_had(kernel): True if there is such a kernel."""
    found = []
    for (kernel, root, configurations), after in guests_read(text):
        if options.guests and kernel not in options.guests and "%s/%s" % (kernel, root) not in options.guests:
            continue
        if configurations[:1] and configurations[0].startswith("?"):
            better = configurations.pop(0)[1:]
            if not options.all and can_be_had(better):
                continue
        configurations += after if options.all else []
        if configurations:
            found.append(Guest(kernel, root, configurations))
    return found


def exported_roots(text, options):
    """The roots whose libbcc compiles programs for guests that load them, each once: this machine's; with -a those of all rows, too."""
    return list(dict.fromkeys([THIS] + [guest.root for guest, _ in guests_read(text) if options.all]))


def can_be_had(kernel):
    return subprocess.run([FETCH, kernel], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


# --- files and programs

def tree_of(root):
    return os.path.join(CACHE, "trees", root)


def tree_check(root):
    """The tree must have been built from these sources."""
    for name in "src", "bpf_text", "tests/workload", "tests/text":
        copy = os.path.join(tree_of(root), "src", name)
        if subprocess.run(["diff", "-rq", os.path.join(TOP, name), copy], check=False).returncode != 0:
            raise Failed("%s is not what is here: run tests/run trees" % copy)


def program(root, name, here=False):
    """Path of a program that was built for guests with this root, as the guest sees it; here: as this machine does."""
    if root == THIS:
        return os.path.join(BUILD, name)
    return (tree_of(root) if here else "") + os.path.join(TREE_BUILD, name)


def is_newer(path, than):
    """True if path is newer than the other, as test -nt: an absent file is older than any that exists."""
    times = [os.stat(name).st_mtime_ns if os.path.exists(name) else -1 for name in (path, than)]
    return times[0] > times[1]


def first_failure(text):
    """The first line with a failure, else the last line."""
    lines = text.splitlines()
    return next((line for line in lines if "FAILED" in line), "".join(lines[-1:]))


def text_check(root, option, path, log):
    """Runs text_check, --offsets or --export, with the libbcc of this root, on this machine: in a guest it would take minutes."""
    command = [program(root, "tests/text/text_check"), option, path]
    if root != THIS:
        command = ["unshare", "--mount", "bash", "-euc", IN_TREE, "-", HERE, tree_of(root), *command]
    elif option == "--offsets":
        command = [VERDICTS, command[0], path, "--", *command]
    with open(log, "wb") as output:
        status = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
    if status != 0:
        raise Failed(first_failure(text_of(log)))


def headers_compile(kernel, path):
    """Writes the offsets file of the kernel in this directory, if it is one that kernel-build made: these have no BTF."""
    for tree in glob.glob(os.path.join(kernel, "root/usr/src/kernels/*")):
        call(program(THIS, "tests/text/header_offsets"), tree, os.path.basename(tree), path)


def programs_compile(root, path, log):
    """Has text_check write programs; removes the file if that fails, because an incomplete one would be taken for whole."""
    with open(path, "wb"):
        pass
    try:
        text_check(root, "--export", path, log)
    except BaseException:
        os.remove(path)
        raise


# --- the run

def guest_signals():
    """Called in a guest's process, which ignores Ctrl-C: this run ends it with SIGTERM then, and it would be ended twice."""
    groups.on_ending(signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, groups.ENDING)


def child_ended():
    """Waits until a child has ended, and returns its pid; it is still to be waited for.

    Python runs the handler of a signal that comes right before a call that blocks only when that call has returned: so none blocks for long."""
    while not (child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)):
        time.sleep(0.2)
    return child.si_pid


class Matrix(Steps):
    """The guests of a run, and their results."""

    def __init__(self, options, logs):
        super().__init__("matrix", BUILD)
        self.options, self.logs = options, logs
        self.directories = {}  # {kernel: directory} of the kernels that are there
        self.running = {}  # {process id: (guest, process)}

    def log(self, *names):
        return os.path.join(self.logs, *names)

    def fail(self, words):
        say("FAILED: " + words)
        self.failed += 1

    def skip(self, words):
        say("skipped: " + words)
        self.skipped += 1

    def absent(self, kind, words):
        """Counts a failure, or a skip if that is allowed, for a kernel or a tree that can't be had."""
        if kind in self.options.allow_skip or "all" in self.options.allow_skip:
            self.skip(words)
        else:
            self.fail("%s; --allow-skip %s if that is right" % (words, kind))

    def kernels_fetch(self, names):
        """Fetches the kernels; reports and counts those that can't be had."""
        for kernel in names:
            done = subprocess.run([FETCH, kernel], stdout=subprocess.PIPE, universal_newlines=True, check=False)
            if done.returncode == 0:
                self.directories[kernel] = done.stdout.strip()
            elif done.returncode == NOT_GIVEN:
                self.skipped += 1  # kernel-fetch has printed why
            else:
                self.absent("vm-" + kernel, "the kernel %s can't be had" % kernel)

    def programs_export(self, roots):
        """Collects the programs that the libbcc of each root compiles from the BPF text. They are kept in tests/text/programs of the build,
        where text_check may have written them already."""
        shutil.rmtree(self.log("programs"), ignore_errors=True)
        os.mkdir(self.log("programs"))
        for root in roots:
            name, check = "host" if root == THIS else root, program(root, "tests/text/text_check", here=True)
            if root != THIS:
                if not os.access(check, os.X_OK):
                    self.skip("programs of %s's libbcc: nothing was built in %s (tests/run trees does)" % (root, tree_of(root)))
                    continue
                tree_check(root)
            path = os.path.join(os.path.dirname(check), "programs")
            try:
                if not is_newer(path, check):
                    programs_compile(root, path, self.log(name + ".export"))
            except (Failed, OSError) as why:
                self.fail("programs of %s's libbcc: %s" % (name, why))
                continue
            shutil.copy(path, self.log("programs", name))

    def load_verdict(self, option, kernel):
        """Runs tests/verdicts.py with --known or --passed for the programs that guests load, on this kernel."""
        call(VERDICTS, option, self.log("programs"), program(THIS, "tests/text/program_loader"),
             os.path.join(self.directories[kernel], "vmlinuz"), "--", "load")

    def guest_command(self, guest):
        """Prepares the guest's folder, and returns the command that boots it."""
        folder, configurations = self.log(guest.name), list(guest.configurations)
        if guest.root != THIS:
            tree_check(guest.root)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        if "load" in configurations:
            try:
                self.load_verdict("--known", guest.kernel)
                configurations.remove("load")
            except Failed:
                shutil.copytree(self.log("programs"), os.path.join(folder, "programs"))
        headers_compile(self.directories[guest.kernel], os.path.join(folder, "offsets"))
        return [BOOT, "-t", str(LIMIT_ALL_S if self.options.all else LIMIT_S), "-o", folder,
                "-r", "/" if guest.root == THIS else tree_of(guest.root), self.directories[guest.kernel], GUEST,
                program(guest.root, "src/tsnap"), program(guest.root, "tests/workload/workload"), *configurations]

    def guest_start(self, guest):
        with output_to(self.log(guest.name + ".log")):
            try:
                command = self.guest_command(guest)
            except (Failed, OSError) as why:
                say(why)
                command = ["false"]  # a guest that can't be prepared is counted as one that failed
            signal.pthread_sigmask(signal.SIG_BLOCK, groups.ENDING)  # until main() can end the new guest
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=guest_signals)
            self.running[process.pid] = guest, process
            signal.pthread_sigmask(signal.SIG_UNBLOCK, groups.ENDING)
        say("%s on %s: started" % (guest.kernel, "this machine's root" if guest.root == THIS else guest.root))

    def guest_wait(self):
        """Waits for one guest, shows its output and counts its tests."""
        guest, process = self.running[child_ended()]
        status = process.wait()
        del self.running[process.pid]
        print("\n==== %s" % guest.name, flush=True)
        subprocess.run(["cat", self.log(guest.name + ".log")], check=False)
        self.guest_count(guest, status if status >= 0 else 128 - status)

    def guest_count(self, guest, status):
        output = text_of(self.log(guest.name + ".log"))
        results = RESULT.findall(output)
        if results:
            self.add(*map(int, results[-1]))
        if status != 0 and (not results or results[-1][1] == "0"):
            self.fail("%s: exit status %d" % (guest.name, status))
        if status == 0 and "\nok programs of " in "\n" + output:
            self.load_verdict("--passed", guest.kernel)
        # programs that the libbcc of this root compiles must read at the offsets of this kernel
        self.check(guest.name + ": offsets in programs", text_check, guest.root, "--offsets", self.log(guest.name, "offsets"),
                   self.log(guest.name + ".offsets"))

    def guests_run(self, guests):
        """Runs the guests; returns the names of those that ran."""
        ran = []
        for guest in guests:
            if guest.root != THIS and not os.access(program(guest.root, "src/tsnap", here=True), os.X_OK):
                self.absent("tree-" + guest.root, "no tsnap in %s%s for a guest with %s (tests/run trees builds it)"
                            % (tree_of(guest.root), TREE_BUILD, guest.kernel))
                continue
            while len(self.running) >= self.options.jobs:
                self.guest_wait()
            self.guest_start(guest)
            ran.append(guest.name)
        while self.running:
            self.guest_wait()
        return ran

    def compat_check(self, names):
        """Compares the results of these guests with the table, or writes them there."""
        option = ["--merge"] if self.options.keep else ["--all"] if self.options.all else []
        command = [COMPAT, *option, TABLE, GUESTS, self.logs, *names]
        if not self.options.keep:
            call(*command)
            return
        with open(self.log("compat.md"), "wb") as file:
            call(*command, stdout=file)
        shutil.copyfile(file.name, TABLE)
        say("packaging/compat.md has what was measured now")

    def run(self):
        """Runs all; returns the exit status."""
        text = text_of(GUESTS)
        guests = guests_list(text, self.options, can_be_had)
        if not guests:
            raise Failed("no guest %s; there are: %s" % (" ".join(self.options.guests),
                                                         " ".join("%s/%s" % guest[:2] for guest, _ in guests_read(text))))
        if not self.options.guests:
            shutil.rmtree(self.logs, ignore_errors=True)
        os.makedirs(self.logs, exist_ok=True)
        self.kernels_fetch(dict.fromkeys(guest.kernel for guest in guests))
        guests = [guest for guest in guests if guest.kernel in self.directories]
        if any("load" in guest.configurations for guest in guests):
            self.programs_export(exported_roots(text, self.options))
        ran = self.guests_run(guests)
        try:
            if ran:
                self.compat_check(ran)
                self.passed += 1
        except Failed:
            self.fail("packaging/compat.md is not what was measured; if it should be: tests/vm/matrix -a -k")
        print("\n%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return 0 if self.failed == 0 and self.passed > 0 else 1


def ended(number, _):
    sys.exit(130 if number == signal.SIGINT else 143)


def main(argv, logs=LOGS):
    matrix = Matrix(arguments(argv[1:]), logs)
    sys.stdout.reconfigure(line_buffering=True)
    groups.on_ending(ended)
    try:
        return matrix.run()
    except (Failed, OSError) as why:
        say(why)
        return 1
    finally:
        groups.on_ending(signal.SIG_IGN)
        for _, process in matrix.running.values():
            process.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
