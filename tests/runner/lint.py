"""The checks of the stage lint. Each is given the stage's steps, see stages.py."""
import os
import re
import shutil

from steps import JOBS, Skipped, answer, call

LLVM = "version 14"
SCRIPT = r"^#!/(bin/bash|bin/sh|bin/busybox sh|usr/bin/env bash)|^# shellcheck shell="


def llvm_needed(program):
    """Skips the check with another release, which formats otherwise and warns about more."""
    version = re.search(r"version \d+", answer(program, "--version")).group()
    if version != LLVM:
        raise Skipped("%s is %s, the tree is kept with %s" % (program, version, LLVM))


def shell(_):
    call("shellcheck", "-x", *answer("grep", "-rlE", SCRIPT, "packaging", "tests", ".ci").splitlines())


def c_format(_):
    llvm_needed("clang-format")
    call("clang-format", "--dry-run", "-Werror", *answer("find", "src", "tests", "bpf_text", "packaging", "-name", "*.[ch]").splitlines())


def c_tidy(steps):
    llvm_needed("clang-tidy")
    steps.ready("clang")
    call("tests/lint/tidy", *(["--full"] if steps.options.all else []), os.path.join(steps.build, "clang"), str(JOBS))


def figures(steps):
    """The tables of tests/bench/README.md show the figures that were measured last."""
    table = "tests/bench/README.md"
    copy = os.path.join(steps.build, "logs", "bench-README.md")
    shutil.copyfile(table, copy)
    call("tests/bench/run", "--from", "tests/bench/results.csv", "--readme", copy)
    call("diff", "-u", table, copy)


def commands(*lines):
    """A check that runs these commands."""
    def function(_):
        for line in lines:
            call(*line.split())
    return function


CHECKS = (
    ("shellcheck", shell),
    ("clang-format", c_format),
    ("clang-tidy", c_tidy),
    # no cycles of includes among folders or files, except those that are listed
    ("cycles of includes", commands("python3 -B tests/lint/test_include_graph.py",
                                    "tests/lint/include-graph --known tests/lint/include-cycles src")),
    # no private words in the sources, and no missing files in the tables of src/README.md
    ("words, names of files", commands("python3 -B tests/lint/test_private_words.py", "tests/lint/private-words .",
                                       "tests/lint/readme-paths src")),
    ("failures without words", commands("python3 -B tests/lint/test_errors_told.py", "tests/lint/errors-told src")),
    # tests that are not run again where no input changed
    ("what is run again", commands("python3 -B tests/lint/test_verdicts.py", "python3 -B tests/lint/test_tidy.py")),
    ("the runner of these tests", commands("python3 -B -m unittest discover -s tests/runner")),
    ("the runner of emulated machines", commands("python3 -B -m unittest discover -s tests/vm")),
    ("the bench's figures", figures),
)
