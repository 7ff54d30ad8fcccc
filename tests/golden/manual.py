#!/usr/bin/env python3
"""The manual pages and the shell completions agree with the program's own --help and --list; man and the shells read them without a warning.

    manual.py TSNAP BUILD [unittest's arguments]
"""
import csv
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

TSNAP, BUILD = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
MADE = os.path.join(BUILD, "src", "manual")
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
PAGES = ("tsnap.8", "tsnap-top.8", "tsnap-record.8", "tsnap-columns.7")
INSTALLED = {"share/man/man8/tsnap.8": "tsnap.8", "share/man/man8/tsnap-top.8": "tsnap-top.8",
             "share/man/man8/tsnap-record.8": "tsnap-record.8", "share/man/man7/tsnap-columns.7": "tsnap-columns.7",
             "share/bash-completion/completions/tsnap": "tsnap", "share/zsh/site-functions/_tsnap": "_tsnap",
             "share/fish/vendor_completions.d/tsnap.fish": "tsnap.fish"}
SECTIONS = {"tsnap.8": ["NAME", "SYNOPSIS", "EXAMPLES", "READING A REPORT", "OPTIONS", "FILTERS", "FINDINGS", "TRACING EVERY WAIT",
                        "CSV FORMAT", "EXACT TIMES", "EXIT STATUS", "FILES", "SECURITY", "OVERHEAD", "BUGS", "SEE ALSO"],
            "tsnap-top.8": ["NAME", "SYNOPSIS", "EXAMPLES", "DESCRIPTION", "FILES", "SEE ALSO"],
            "tsnap-record.8": ["NAME", "SYNOPSIS", "EXAMPLES", "RECORDINGS", "SERVICE", "SEE ALSO"],
            "tsnap-columns.7": ["NAME", "DESCRIPTION", "COLUMNS", "SETS", "MEASURES", "NEEDS", "WAIT CLASSES", "SEE ALSO"]}


def output(*words, **options):
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60, **options)
    return done.stdout.decode()


def made(name):
    with open(os.path.join(MADE, name), encoding="utf-8") as file:
        return file.read()


def page_sections(page="tsnap.8"):
    """{title: lines} of a manual page, without escapes."""
    sections, lines = {}, []
    for line in made(page).splitlines():
        line = re.sub(r"\\f[BRI]", "", line).replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"')
        if line.startswith(".SH "):
            lines = sections.setdefault(line[4:], [])
        else:
            lines.append(line)
    return sections


def entries(lines):
    """{tag: text} of a list of the manual page."""
    found = {}
    for tag, words in re.findall(r"^\.TP\n(?:\.B )?(.*)\n((?:(?!\.TP$|\.SS ).*\n?)*)", "\n".join(lines), re.M):
        found[tag] = " ".join(words.split()).replace("\\&", "")
    return found


def options_of_help():
    """{--name: help} of --help: names begin a line, help is in column 32."""
    found, name = {}, None
    for line in output(TSNAP, "--help", "all").split("\nEXPR:")[0].splitlines():
        begins = re.match(r"  (?:-\w, |    )(--[\w-]+)", line)
        name = begins.group(1) if begins else name if line.startswith(" " * 32) else None
        if name:
            found[name] = (found.get(name, "") + " " + line[32:]).strip()
    return found


def list_of(title):
    """{name: line} of the sections of --list whose heading begins with the title; "columns": the columns."""
    found, now = {}, "columns"
    for line in output(TSNAP, "--list").splitlines():
        if re.match(r"(Needs|Several|States|Why|Findings|Kinds|Measures)\b", line):
            now = re.match(r"\w+", line).group()
        elif line.startswith("  ") and now == title:
            found[line.split()[0]] = line
    return found


class Page(unittest.TestCase):
    def test_sections(self):
        for page, names in SECTIONS.items():
            self.assertEqual([name for name in page_sections(page) if name in names], names)

    def test_options(self):
        told = entries(page_sections()["OPTIONS"])
        options = {re.search(r"--[\w-]+", tag).group(): words for tag, words in told.items()}
        listed = options_of_help()
        self.assertGreater(len(listed), 40)
        self.assertEqual(sorted(options), sorted(listed))
        for name, words in listed.items():
            self.assertEqual(options[name][:len(words)].lower(), words.lower())

    def test_tables(self):
        page, columns = page_sections(), page_sections("tsnap-columns.7")
        for section, title in (("READING A REPORT", "States"), ("TRACING EVERY WAIT", "Kinds")):
            self.assertEqual(list(entries(page[section])), list(list_of(title)), section)
        for section, title in (("COLUMNS", "columns"), ("SETS", "Several"), ("MEASURES", "Measures"), ("NEEDS", "Needs")):
            self.assertEqual(list(entries(columns[section])), list(list_of(title)), section)
        self.assertGreater(len(list_of("columns")), 100)
        self.assertEqual({tag.split()[0] for tag in entries(columns["WAIT CLASSES"])}, set(list_of("Why")))
        told = re.findall(r"[\w]+", " ".join(tag for tag in entries(page["FINDINGS"])))
        self.assertLessEqual(set(list_of("Findings")), set(told))

    def test_prose_names_what_there_is(self):
        page = "\n".join("\n".join(lines) for page in PAGES for lines in page_sections(page).values())
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
        strangers = {"--path", "--pid", "--perf-basic-prof", "--now"}  # options of other programs
        self.assertEqual(named - set(options_of_help()), strangers)

    def test_sql_weighs_as_a_report(self):
        statement = re.search(r"^SELECT (?:.*\n)*?.*;$", "\n".join(page_sections()["CSV FORMAT"]), re.M).group()
        with open(os.path.join(FIXTURES, "exact.csv"), encoding="utf-8") as file:
            lines = [line for line in file if ",102,100," not in line]  # some sleep was not recorded, as without -a
        rows = list(csv.reader(lines))
        with sqlite3.connect(":memory:") as base:
            base.execute("CREATE TABLE samples (%s)" % ", ".join("%s TEXT" % name for name in rows[0]))
            base.executemany("INSERT INTO samples VALUES (%s)" % ", ".join("?" * len(rows[0])), rows[1:])
            weighed = {(state, call or "-"): seconds for state, _, call, seconds in base.execute(statement)}
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.writelines(lines)
            file.flush()
            report = output(TSNAP, "--replay", file.name, "-a", "-g", "state,syscall")
        told = re.findall(r"^ +[\d.]+ +([\d.]+) +[\d.]+% #* +(\S+) +(\S+)$", report, re.M)
        self.assertEqual(sorted(weighed), sorted((state, call) for _, state, call in told))
        self.assertGreater(len(told), 4)
        for seconds, *key in told:
            self.assertLessEqual(abs(weighed[tuple(key)] - float(seconds)), 0.0051, key)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man, or no groff")
    def test_man(self):
        for page in PAGES:
            done = subprocess.run(["man", "--warnings", "-l", os.path.join(MADE, page)], timeout=60, capture_output=True,
                                  env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"SEE ALSO", done.stdout)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_mandoc(self):
        done = subprocess.run(["mandoc", "-Tlint", *(os.path.join(MADE, page) for page in PAGES)], timeout=60, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, b""))


class Completion(unittest.TestCase):
    def bash(self, *words):
        script = ("source %s; COMP_WORDS=(tsnap \"$@\"); COMP_CWORD=$#; _tsnap; printf '%%s\\n' \"${COMPREPLY[@]}\""
                  % shlex.quote(os.path.join(MADE, "tsnap")))
        return output("bash", "-c", script, "bash", *words, cwd="/").split()

    def test_bash(self):
        self.assertEqual(sorted(self.bash("--")), sorted(options_of_help()))
        self.assertEqual(self.bash("-a", "--all"), [name for name in options_of_help() if name.startswith("--all")])
        self.assertEqual(self.bash("-g", "state"), ["state", "state_us"])
        self.assertEqual(self.bash("--more-columns", "=", "state,kfuncs"), ["state,kfuncs"])
        self.assertEqual(sorted(self.bash("-G", "state,com")), ["state,comm", "state,comm_before", "state,commsum"])
        self.assertEqual(self.bash("--trace", "runq,of"), ["runq,offcpu"])
        self.assertEqual(self.bash("--kernel-types", "k"), ["kheaders"])
        self.assertEqual(self.bash("-u", "roo"), ["root"])
        self.assertEqual(self.bash("--replay", "/et"), ["/etc"])
        self.assertEqual(self.bash("--duration", ""), [])
        self.assertEqual(self.bash("--stacks", "--csv"), ["--csv", "--csv-safe"])

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        def fish(line):
            words = output("fish", "--no-config", "-c", "source %s; complete -C '%s'" % (shlex.quote(MADE + "/tsnap.fish"), line))
            return [word.split("\t")[0] for word in words.splitlines()]

        self.assertEqual(sorted(fish("tsnap --")), sorted(options_of_help()))
        self.assertEqual(sorted(fish("tsnap -g state,com")), ["state,comm", "state,comm_before", "state,commsum"])
        self.assertEqual(fish("tsnap --trace of"), ["offcpu"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        # prints the words that _arguments is called with; the completion system itself needs a terminal
        script = ("_arguments() { print -l -- $@ }; _values() { print -l -- $@ }; source %s; _tsnap_columns"
                  % shlex.quote(MADE + "/_tsnap"))
        words = output("zsh", "-f", "-c", script).splitlines()
        options = {found.group(1) for word in words for found in [re.search(r"(--[\w-]+)=?\[", word)] if found}
        self.assertEqual(sorted(options), sorted(options_of_help()))
        self.assertLessEqual(set(list_of("columns")), set(words))


class Install(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            output("cmake", "-DCMAKE_INSTALL_PREFIX=" + folder, "-P", os.path.join(MADE, "cmake_install.cmake"))
            for path, name in INSTALLED.items():
                with open(os.path.join(folder, path), encoding="utf-8") as file:
                    self.assertEqual(file.read(), made(name))


if __name__ == "__main__":
    unittest.main()
