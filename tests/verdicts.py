#!/usr/bin/env python3
"""verdicts.py [--output FILE] INPUT... -- COMMAND...: runs COMMAND, unless it passed before on the same machine with the same inputs.

verdicts.py --known | --passed INPUT... -- WORD...: --known: exit status 0 if the test that WORD... names is known to have passed with
these inputs; --passed: remembers that it did.

An input is a file, or a folder with all below it. A verdict depends on the inputs' contents, the words of COMMAND, the installed packages
(the list of dpkg or rpm; without one nothing is remembered) and the kernel's release. Only exit status 0 is remembered: a command that
failed or was skipped is run again. FILE, which COMMAND writes, is remembered too, and written again where COMMAND is not run.
Meant for tests whose next run would have the same result: those of programs and files alone, not of what the host is doing.
Environment: TSNAP_TEST_VERDICTS, the folder that remembers; without it COMMAND is always run. TSNAP_TEST_KNOWN, a file that gets a
line for each COMMAND that was not run.
"""
import functools
import hashlib
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite")


@functools.lru_cache(maxsize=None)  # the same header is an input of many tests
def file_hash(path):
    """Hash of the file's contents; a fixed text if there is no such file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "absent"


def files_of(path):
    """The file, or all files below the folder."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def short(path):
    """The path from the top of the sources, so that another clone has the same verdicts."""
    return path.replace(TOP + "/", "")


def key_of(inputs, words):
    """Key of a verdict: a hash of all that it depends on."""
    key = hashlib.sha256()
    for word in words:
        key.update(short(word).encode() + b"\0")
    for path in sorted(file for given in inputs for file in files_of(given)):
        key.update(b"%s %s\0" % (short(path).encode(), file_hash(path).encode()))
    key.update(" ".join([os.uname().release, *map(file_hash, PACKAGES)]).encode())
    return key.hexdigest()


class Verdicts:
    """A folder with a file for each key that passed, which holds the command's output file; without a folder nothing is remembered."""

    def __init__(self, folder):
        self.folder = folder
        if folder:
            os.makedirs(folder, exist_ok=True)

    def passed(self, key):
        """True if the key passed; sets its file's time to now, because tests/run drops files that were not used for long."""
        if not self.folder:
            return False
        try:
            os.utime(os.path.join(self.folder, key))
        except OSError:
            return False
        return True

    def keep(self, key, output=None):
        """Remembers that the key passed. The file is whole or absent at any moment, because another run may read it."""
        if not self.folder:
            return
        path = os.path.join(self.folder, key)
        with open("%s.%d" % (path, os.getpid()), "wb") as file:
            if output:
                with open(output, "rb") as made:
                    shutil.copyfileobj(made, file)
        os.rename(file.name, path)

    def restore(self, key, output):
        shutil.copyfile(os.path.join(self.folder, key), output)


def remembered():
    """The verdicts in the folder that the environment names."""
    return Verdicts(os.environ.get("TSNAP_TEST_VERDICTS") if any(map(os.path.exists, PACKAGES)) else None)


def known(what):
    """Writes one line for tests/run, which reports how many commands were not run."""
    path = os.environ.get("TSNAP_TEST_KNOWN")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(what + "\n")


def run(command, verdicts, key, output):
    """Runs the command unless it passed before; returns its exit status, and remembers that it passed."""
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        verdicts.keep(key, output)
    return code if code >= 0 else 128 - code


def main(argv):
    if "--" not in argv or argv[-1] == "--":
        print(__doc__, file=sys.stderr)
        return 2
    at = argv.index("--")
    inputs, command, output, option = argv[1:at], argv[at + 1:], None, None
    if inputs[:1] == ["--output"]:
        output, inputs = inputs[1], inputs[2:]
    elif inputs[:1] in (["--known"], ["--passed"]):
        option, inputs = inputs[0], inputs[1:]
    verdicts = remembered()
    key = key_of(inputs, command)
    if option == "--passed":
        verdicts.keep(key)
    elif verdicts.passed(key):
        print("passed before, with the same inputs: " + " ".join(map(short, command)))
        known(" ".join(map(short, command)))
        if output:
            verdicts.restore(key, output)
    elif option:
        return 1
    else:
        return run(command, verdicts, key, output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
