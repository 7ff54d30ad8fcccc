#!/usr/bin/env python3
"""verdicts.py [--output FILE] INPUT... -- COMMAND...: runs COMMAND, unless it passed before on the same machine with the same inputs.

verdicts.py --known | --passed INPUT... -- WORD...: exit status 0 if it is known that what WORD... names passed with these inputs;
remembers that it did.

An input is a file, or a folder with all below it. Beside their contents the words of COMMAND count, the packages that are installed
(the list of dpkg or rpm; without one nothing is remembered) and the kernel's release. Only exit status 0 is remembered: what failed
or was skipped is run again. FILE, which COMMAND writes, is remembered with it, and written again where COMMAND is not run.
For tests of which one run tells what the next one would: of programs and files alone, not of what the host is doing.
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


@functools.lru_cache(maxsize=None)  # the same header is an input of many
def file_hash(path):
    """Hash of the contents, or that there is no such file."""
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
    """As from the top of the sources: another clone has the same verdicts."""
    return path.replace(TOP + "/", "")


def key_of(inputs, words):
    """What a verdict is remembered by."""
    key = hashlib.sha256()
    for word in words:
        key.update(short(word).encode() + b"\0")
    for path in sorted(file for given in inputs for file in files_of(given)):
        key.update(b"%s %s\0" % (short(path).encode(), file_hash(path).encode()))
    key.update(" ".join([os.uname().release, *map(file_hash, PACKAGES)]).encode())
    return key.hexdigest()


class Verdicts:
    """A folder with a file for each key that passed, which holds the command's output file; None: it remembers nothing."""

    def __init__(self, folder):
        self.folder = folder
        if folder:
            os.makedirs(folder, exist_ok=True)

    def passed(self, key):
        """True if it did; the file's time is that of the last question, by which tests/run drops old ones."""
        if not self.folder:
            return False
        try:
            os.utime(os.path.join(self.folder, key))
        except OSError:
            return False
        return True

    def keep(self, key, output=None):
        """The file is whole or not there: another run may read it now."""
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
    """The folder that the environment names."""
    return Verdicts(os.environ.get("TSNAP_TEST_VERDICTS") if any(map(os.path.exists, PACKAGES)) else None)


def known(what):
    """One line for tests/run, which tells how many were not run."""
    path = os.environ.get("TSNAP_TEST_KNOWN")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(what + "\n")


def run(command, verdicts, key, output):
    """The exit status of the command, which is remembered if it passed."""
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
