"""Reports in which no thread is active: they show the sleeping threads, as -a does, or name options that match no thread."""
import os
import re
import signal

from harness import START_S, STOP_S, case, check, wait_until

FIRST_S = 1  # seconds (-d) of each run


def report(ctx, *args):
    tool = ctx.plain("-d", FIRST_S, *args)
    tool.finish_plain(0, START_S + FIRST_S + STOP_S)
    return tool.out.decode()


def groups_of(text):
    """{(name, system call, why): threads} of the table of sleeping threads."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("THREADS ")), None)
    check(start is not None, "no table: %s", text)
    found = {}
    for line in lines[start + 1:]:
        if not re.match(r" +\d", line):
            break
        threads, *words = line.split()
        found[tuple(words)] = int(threads)
    return found


def groups_of_all(ctx, *args):
    """{(name, system call, why): threads} by `tsnap -a`: threads of an average scan; a few scans may have shown one otherwise."""
    text = report(ctx, "-a", "-g", "commsum,syscall,why", *args)
    rows = re.findall(r"^ +(\d+\.\d+) +\d+\.\d+ +[\d.]+% #* +(.*)$", text, re.M)
    check(rows, "no rows with -a: %s", text)
    return {tuple(words.split()): round(float(threads)) for threads, words in rows if float(threads) >= 0.5}


@case
def idle_as_all(ctx):
    """The groups of threads that sleep, and their number, are those that -a shows: of locks, sockets, pipes, timers, sets."""
    workloads = ctx.workloads([("wait", {"on": name, "dir": ctx.temporary()}) for name in
                               ("pipe_reader", "condition", "tcp_accept", "timer", "epoll_two", "poll_two", "child")] +
                              [("sleep", {"call": "futex"})] * 3)
    pids = ",".join(workload["pid"] for workload in workloads)
    text = report(ctx, "-p", pids)
    expected = groups_of_all(ctx, "-p", pids)
    found = groups_of(text)
    check(len(found) == 5 and len(expected) > 5, "%d groups of %d: %s", len(found), len(expected), text)
    for words, threads in found.items():
        check(expected.get(words) == threads, "%s: %d threads, with -a %s", words, threads, expected.get(words))
    check(sorted(found.values(), reverse=True) == sorted((int(n) for n in expected.values()), reverse=True)[:5],
          "not the largest groups: %s of %s", found, expected)
    told = re.search(r"^No samples: no selected thread was active\. (\d+) of them sleep\.", text, re.M)
    check(told and int(told.group(1)) == sum(expected.values()), "%s sleep, with -a %s", told and told.group(1), sum(expected.values()))
    left = re.search(r"^(\d+) more threads? in (\d+) groups?\. -a shows", text, re.M)
    check(left and int(left.group(1)) == sum(expected.values()) - sum(found.values()) and int(left.group(2)) == len(expected) - 5,
          "what is left: %s", text)


@case(thorough=True)
def idle_by_filter(ctx):
    """Sleeping threads by thread, name, user and expression are shown, in each interval anew; machine-readable formats do not show them."""
    uid = 61000 + os.getpid() % 4000  # used by no other test that runs at the same time

    def become():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    theirs = ctx.reachable().workloads([("sleep", {"call": "pipe_read"})], popen={"preexec_fn": become, "cwd": "/"})[0]
    chosen = (("-t", theirs["tid"]), ("-c", "pipe_read", "-p", theirs["pid"]), ("-u", str(uid), "-c", "pipe_read"),
              ("--filter", "tid=%d" % theirs.tid))
    for options in chosen:
        found = groups_of(report(ctx, *options))
        check(found == {("pipe_read", "read", "pipe"): 1}, "%s: %s", options, found)
    text = report(ctx, "-t", theirs["tid"], "-i", 0.5)
    check(text.count("1 of them sleeps.") == 2 == text.count("pipe_read"), "-i: %s", text)
    for form in ("--csv", "--json"):
        tool = ctx.plain(form, "-d", FIRST_S, "-t", theirs["tid"])
        tool.finish_plain()
        words = [line for line in tool.err.splitlines() if not re.search(r" late scans? ", line)]
        check(b"pipe_read" not in tool.out and not words, "%s: %s %s", form, tool.out, tool.err)


@case
def idle_and_busy(ctx):
    """Scans go on as they were after an interval without samples: a spinner that was stopped is seen in each of the next ones."""
    spinner = ctx.workload("spin")
    spinner.signal(signal.SIGSTOP)
    tool = ctx.plain("-i", 0.5, "-p", spinner["pid"], "-g", "psn")
    wait_until(lambda: tool.out.count(b"0 of them sleep; 2 are stopped or zombies.") >= 2, START_S + STOP_S, "two intervals")
    spinner.signal(signal.SIGCONT)

    def seen():
        """The numbers of threads in the spinner's rows of all intervals, one row for each state."""
        text = re.sub(r" +-$", "", tool.out.decode(), flags=re.M)
        return [float(threads) for threads in re.findall(r"^ +(\d+\.\d+) .* spin$", text, re.M)]

    wait_until(lambda: sum(seen()) > 3 and len(tool.out.split(b"tsnap on ")) > 6, START_S, "four intervals with it")
    tool.signal(signal.SIGINT)
    tool.finish_plain()
    busy = [text for text in tool.out.decode().split("tsnap on ") if " spin" in text]
    # the spinner began to run within the first of these intervals
    check(0.85 * (len(busy) - 1) < sum(seen()) <= 1.05 * len(busy), "a spinner, %s threads of it: %s", seen(), tool.out.decode())


@case
def idle_of_nobody(ctx):
    """Options that no thread matches are named: and only these."""
    mine = ctx.workload("sleep", call="futex")
    for options, unmet in ((("-c", "no:such:name", "-u", "root"), "-c no:such:name"),
                           (("--cgroup", "/no/such/group"), "--cgroup /no/such/group"),
                           (("--filter", "container=nosuch", "-p", mine["pid"]), "--filter container=nosuch"),
                           (("-t", "999999999", "-c", "no:such:name"), "-t 999999999, nor -c no:such:name")):
        text = report(ctx, *options)
        check("No samples: there is no thread for %s. ps " % unmet in " ".join(text.split()), "%s: %s", options, text)
    text = report(ctx, "-p", mine["pid"], "--filter", "ppid!=%d" % os.getpid())
    check("No samples: no thread matches all conditions." in text, "each fits some: %s", text)
