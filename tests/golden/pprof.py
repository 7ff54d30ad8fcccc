#!/usr/bin/env python3
"""--pprof, read by a decoder in this file and by Go's pprof, and compared with the folded stacks of the same rows.

    pprof.py TSNAP [unittest's arguments]
"""
import collections
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TSNAP = os.path.abspath(sys.argv.pop(1))
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
TYPES = ["on_cpu", "off_cpu", "run_queue", "disk"]


def tsnap(*arguments):
    done = subprocess.run([TSNAP, *arguments], cwd=FIXTURES, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    return done.stdout


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(data):
    """{field number: [values]} of a protobuf message; bytes stay bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        found[key >> 3].append(value)
    return found


def packed(data):
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


def profile(*arguments, mapped=False):
    """([type], [(frames outermost first, {label: value}, [values])]) of a profile; mapped: frames are (name, file, build-id)."""
    whole = fields(gzip.decompress(tsnap("--pprof", "-", *arguments)))
    strings = [one.decode() for one in whole[6]]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    functions = {f[1][0]: strings[f[2][0]] for f in map(fields, whole[5])}
    mappings = {m[1][0]: (strings[m[5][0]], strings[(m[6] or [0])[0]]) for m in map(fields, whole[3])}
    assert len(mappings) == len(set(mappings.values())) == len(whole[3])
    locations = {}
    for location in map(fields, whole[4]):
        name, mapping = functions[fields(location[4][0])[1][0]], mappings[location[2][0]]
        locations[location[1][0]] = (name, *mapping) if mapped else name
    samples = []
    for sample in map(fields, whole[2]):
        labels = {strings[label[1][0]]: strings[label[2][0]] if label[2] else (label[3] or [0])[0]
                  for label in map(fields, sample[3])}
        samples.append(([locations[id] for id in reversed(packed(sample[1][0]))], labels, packed(sample[2][0])))
    return [strings[fields(one)[1][0]] for one in whole[1]], samples


class Profiles(unittest.TestCase):
    def test_is_what_folded_stacks_are(self):
        for recording in ("stacks.csv", "hostile.csv", "exact.csv", "small.csv"):
            types, samples = profile("--replay", recording, "-a", "-g", "state,comm")
            self.assertEqual(types, TYPES)
            given, expected = collections.Counter(), collections.Counter()
            for frames, labels, values in samples:
                self.assertEqual([bool(value) for value in values],
                                 [kind == {"ON": "on_cpu", "RQ": "run_queue", "D": "disk"}.get(labels["state"], "off_cpu") for kind in TYPES])
                comm = labels.get("comm", "-").replace(";", ":")
                given[";".join([labels["state"], comm, *(frames or [])])] += sum(values) // 1000
            for line in tsnap("--folded", "--replay", recording, "-a", "-g", "state,comm").decode().splitlines():
                frames, weight = line.rsplit(" ", 1)
                expected[";".join(re.sub(r"_\[[kijw]\]$", "", frame) for frame in frames.split(";"))] += int(weight)
            self.assertEqual(given, expected, recording)

    def test_labels(self):
        samples = profile("--replay", "stacks.csv", "-a")[1]
        self.assertIn(({"comm": "db", "pid": 100, "state": "S", "syscall": "futex"}), [labels for _, labels, _ in samples])
        self.assertTrue(all(set(labels) <= {"comm", "pid", "state", "syscall", "why", "waits_on", "waker_comm", "container"}
                            for _, labels, _ in samples))

    def test_mappings_are_files(self):
        """Two programs with a function of the same name each have their own; a frame that is in no file is in a mapping of its kind."""
        with tempfile.TemporaryDirectory() as directory:
            recording, dictionary = directory + "/samples.csv", directory + "/stacks.csv"
            with open(recording, "w", encoding="utf-8") as file:
                file.write("timestamp,weight_us,tid,pid,state,comm,syscall,ustack,kstack\n")
                for tid, ustack, kstack in (1, '"0x1"', '"0x9"'), (2, '"0x2"', ""), (3, '"0x3"', ""), (4, '"0x4"', ""):
                    file.write('"2026-11-20T20:42:53.000000Z",50000,%d,100,"S","db","futex",%s,%s\n' % (tid, ustack, kstack))
            with open(dictionary, "w", encoding="utf-8") as file:
                file.write('hash,kind,func,funcs,frames,files\n'
                           '"0x1","user",,,"main;serve;wait_[l]","/bin/a@b@0a1b;;/lib/libc.so.6@ff"\n'
                           '"0x9","kernel",,,"do_syscall_64_[k]",\n'
                           '"0x2","user",,,"[lost];main;compiled_[j];main","-;/bin/c@;-;/bin/c@"\n'
                           '"0x3","user",,,"start;run",\n'
                           '"0x4","user",,,"a;b;c","/bin/a@b@0a1b"\n')
            given = {tuple(frames) for frames, _, _ in profile("--replay", recording, "--stack-dict", dictionary, "-a", mapped=True)[1]}
        a, libc, c = ("/bin/a@b", "0a1b"), ("/lib/libc.so.6", "ff"), ("/bin/c", "")
        program, call = ("[program]", ""), ("futex", "[system call]", "")
        self.assertEqual(given, {
            (("main", *a), ("serve", *a), ("wait", *libc), call, ("do_syscall_64", "[kernel]", "")),
            (("[lost]", *program), ("main", *c), ("compiled", "[JIT]", ""), ("main", *c), call),
            (("start", *program), ("run", *program), call),
            (("a", *a), ("b", *program), ("c", *program), call)})

    def test_nobody(self):
        self.assertEqual(profile("--replay", "stacks.csv", "-c", "nobody"), (TYPES, []))

    @unittest.skipUnless(shutil.which("go"), "no go: its pprof reads nothing")
    def test_read_by_pprof(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "profile.pb.gz")
            tsnap("--pprof", path, "--replay", "stacks.csv", "-a")
            environment = dict(os.environ, HOME=directory, PPROF_TMPDIR=directory)

            def pprof(*arguments):
                return subprocess.run(["go", "tool", "pprof", *arguments, path], capture_output=True, text=True, timeout=60, check=True,
                                      env=environment, cwd=directory).stdout
            self.assertRegex(pprof("-raw"), r"(?m)^ *comm:\[db\].* state:\[S\]")
            self.assertIn("on_cpu/nanoseconds[dflt] off_cpu/nanoseconds run_queue/nanoseconds disk/nanoseconds", pprof("-raw"))
            total = sum(values[1] for _, _, values in profile("--replay", "stacks.csv", "-a")[1])
            top = pprof("-top", "-unit=us", "-sample_index=off_cpu")
            self.assertEqual(re.search(r"of (\S+)us total", top).group(1), "%d" % (total // 1000))


if __name__ == "__main__":
    unittest.main()
