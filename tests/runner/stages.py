"""The stages of tests/run: what each does, and when it runs."""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import typing

import lint
from steps import JOBS, RESULT, TOP, Failed, Skipped, Steps, answer, call, failure_show, locked, output_to, say, tee, text_of

SANITIZED_LEAST = 100  # at least so many live tests pass although the program is slow
SUITES = ("sid", "trixie", "bullseye")
FINDING = re.compile(r"runtime error: |ERROR: AddressSanitizer: ")
FIRST_WORDS = re.compile(r".*(?:: error: |^FAIL |^skip: |\*\*\*|^tree-(?:make|run): .*fail).*", re.M)  # why a tree's tests failed


class Stage(typing.NamedTuple):
    """A row of the table of stages."""
    name: str
    when: str  # ALL: only with --all, or if named; BESIDE: may run while others do; EACH: all other stages
    help: str
    function: typing.Callable


def log_path(options, name):
    return os.path.join(options.build, "logs", name)


class StageSteps(Steps):
    """The tests of a stage that works below the folder options.build."""

    def __init__(self, name, options):
        super().__init__(name, options.build, options.since)
        self.options = options

    def program(self, path):
        """Path of a program in the tree that gcc built."""
        return os.path.join(self.build, "gcc", path)

    def log(self, name):
        return log_path(self.options, name + ".log")

    def ready(self, tree):
        """Builds a tree that the stage needs; the build's output is shown only where it fails."""
        try:
            with output_to(self.log("build-" + tree)):
                TREES[tree](self)
        except Failed:
            failure_show(self.log("build-" + tree))
            raise


def skip_allowed(options, kind):
    return kind in options.allow_skip or "all" in options.allow_skip


def root_needed():
    if os.getuid() != 0:
        raise Skipped("needs root")


def trees_folder():
    return os.path.join(os.environ.get("TSNAP_VM_CACHE") or "/var/cache/tsnap-vm", "trees")


# --- builds

def build_gcc(steps):
    steps.build_tree("gcc", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_BUILD_TYPE=Release")


def build_more(steps, name, *options):
    """Builds a tree in addition to the one that users build. The programs of tests/stack do not depend on a tree's own flags: this tree has
    those of the first. lld links a hundred programs faster."""
    linker = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
    steps.build_tree(name, "-DCMAKE_C_COMPILER=clang", "-DTSNAP_STACK_PROGRAMS=" + steps.program("tests/stack"), *linker, *options)


def build_clang(steps):
    """The tests, too, are built with clang: in the tree of the sanitizers."""
    build_more(steps, "clang", "-DCMAKE_BUILD_TYPE=Release", "-DTSNAP_TESTS=OFF")


def build_sanitize(steps):
    build_more(steps, "sanitize", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g", "-DTSNAP_SANITIZE=ON", "-DTSNAP_FUZZ=ON",
               "-DTSNAP_FUZZ_SECONDS=%d" % (60 if steps.options.all else 1))


def build_arm64(steps):
    root = answer("tests/arm64/sysroot-make")
    with locked(os.path.join(steps.build, "arm64.lock")):  # fetch_ahead() may be at it
        options = ["-DCMAKE_TOOLCHAIN_FILE=%s/cmake/arm64.cmake" % TOP, "-DCMAKE_SYSROOT=" + root, "-DCMAKE_BUILD_TYPE=Release"]
        steps.build_tree("arm64", *options)
        steps.build_tree("arm64-clang", *options, "-DCMAKE_C_COMPILER=clang")


TREES = {"gcc": build_gcc, "clang": build_clang, "sanitize": build_sanitize, "arm64": build_arm64}


# What is done ahead for stages of these names, while others run. A stage makes what is still missing, or waits for its lock, and reports what
# failed.

def install(steps, purpose):
    with locked(os.path.join(steps.build, "packages.lock")):
        call("packaging/install-deps", purpose)


def fetch_ahead(steps, names):
    """Installs and fetches, mostly by the network; on a new machine the packages take as long as the builds."""
    if "tools" in names:
        install(steps, "test")
    os.nice(19)
    if "trees" in names:
        for suite in SUITES:
            subprocess.run(["tests/tree/tree-make", suite], check=False)
    if "vm" in names:
        for line in text_of("tests/vm/kernels").splitlines():
            if not line.startswith("#"):
                subprocess.run(["tests/vm/kernel-fetch", line.split()[0]], check=False)
    if "arm64" in names:
        build_arm64(steps)


def build_ahead(steps, names):
    """Builds on the CPU time that other builds leave, as while CMake tries the compiler."""
    os.nice(19)
    for tree in "clang", "gcc", "sanitize":  # sanitize takes programs from the tree of gcc
        if tree in names:
            TREES[tree](steps)


AHEAD = (fetch_ahead, build_ahead)

# --- stages

def build_of(words, build):
    """A stage that only builds."""
    return lambda steps: steps.check(words, build, steps)


def ctest_of(tree, labels):
    """A stage that runs a tree's tests with these labels."""
    def function(steps):
        steps.ready(tree)
        steps.ctest(tree, labels)
    return function


def packages_of(purpose):
    """A stage that only installs packages."""
    return lambda steps: steps.check("packages", install, steps, purpose)


def text(steps):
    root_needed()
    steps.ready("gcc")
    steps.ctest("gcc/tests/text", "^text$")  # ctest runs in this subfolder: another ctest may be running in the tree


def lint_all(steps):
    for words, function in lint.CHECKS:
        steps.check(words, function, steps)


def browser(steps):
    steps.ready("gcc")
    steps.driver("python3", "-B", "tests/browser/run_browser.py", steps.program("src/tsnap"))


def tree_test(steps, suite, name, *arguments):
    """Runs tests/tree/tree-run with a log of its own, because two run at once."""
    path = steps.log("tree-" + name)
    with open(path, "wb") as log:
        status = subprocess.run(["tests/tree/tree-run", *arguments], stdout=log, stderr=log, check=False).returncode
    if status == 77:
        say("Debian %s can't be had: %s" % (suite, "".join(text_of(path).splitlines()[-1:])))
        if skip_allowed(steps.options, "tree-" + suite):
            with open(path, "ab") as log:
                log.write(b"0 passed, 0 failed, 1 skipped\n")


def trees(steps):
    """Builds two trees at once. After that nothing is built, because times are compared: runs on this kernel the program of each tree, and the
    program of the oldest tree in the other trees and here."""
    root_needed()
    for path in glob.glob(steps.log("tree-*")):
        os.remove(path)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda suite: tree_test(steps, suite, suite, "-b", suite), SUITES))
    programs = {suite: os.path.join(trees_folder(), suite, "build/gcc/src/tsnap") for suite in SUITES}
    programs = {suite: path for suite, path in programs.items() if os.access(path, os.X_OK)}  # failed builds were reported already
    oldest = programs.get("bullseye")
    for suite, program in programs.items():
        tree_test(steps, suite, suite + "-live", suite, program)
        if oldest and program != oldest:
            tree_test(steps, suite, suite + "-oldest", suite, oldest)
    skipped_before = steps.skipped
    if oldest:
        steps.driver("python3", "-B", "tests/live/run_live.py", "--jobs", "4", "--workload",
                     os.path.join(trees_folder(), "bullseye/build/gcc/tests/workload/workload"), "--tsnap", oldest,
                     "spin", "blocked_before", "totals")
    can_run = oldest and steps.skipped == skipped_before  # live tests that can run here can run in each tree: the kernel is the same
    for path in sorted(glob.glob(steps.log("tree-*"))):
        tree_log_count(steps, path, can_run)


def tree_log_count(steps, path, can_run):
    """Counts the results in a tree's log. Where live tests can run none may be skipped."""
    output, failed_before = text_of(path), steps.failed
    steps.driver_ended(0, output)
    if can_run and re.search("^skip: ", output, re.M):
        steps.failed += 1
    if steps.failed > failed_before:
        why = FIRST_WORDS.search(output)
        say("FAILED, %s: %s" % (path, why.group() if why else "".join(output.splitlines()[-1:])))


def packages(steps):
    root_needed()
    steps.driver("tests/package/run", "bullseye", "bookworm", "trixie", "sid", "rpm")


def bundle(steps):
    """Builds the bundle, in a tree that is kept, and tests it here and in roots without anything; with --all in new trees and on old kernels, too."""
    root_needed()
    steps.ready("gcc")
    folder = os.path.join(steps.build, "bundle")
    steps.check("the bundle is built", call, "packaging/package", "bundle", folder)
    test = ["tests/package/bundle", *glob.glob(folder + "/tsnap-*"), steps.program("src/tsnap"), steps.program("tests/workload/workload")]
    steps.driver(*test, *(["bookworm", *SUITES] if steps.options.all else []))
    if steps.options.all:
        steps.driver(test[0], "--vm", *test[1:])


def live(steps):
    root_needed()
    steps.ready("gcc")
    # most of a test's time is sleep, but with two tests for each CPU one in twenty saw nothing but the others
    driver = ("python3", "-B", "tests/live/run_live.py", "--workload", steps.program("tests/workload/workload"))
    with_tsnap = (*driver, "--jobs", str(min(JOBS + 1, 8)), "--tsnap", steps.program("src/tsnap"))
    steps.driver(*driver, "--jobs", str(JOBS), "--self-test")
    steps.driver(*with_tsnap, *(["--all"] if steps.options.all else []))
    # live tests through perf tracepoints, where tracefs can be mounted for these tests alone; the oldest guest has nothing else
    more = ("totals_close", "totals_of_*", "totals_at_any_rate", "exec_by_*", "exit_storm", "zombie*", "hostile_comm_*", "killed")
    steps.driver("unshare", "--mount", "tests/live/with-tracefs", *with_tsnap, "--tsnap-args=--without raw_tracepoint",
                 "spin", "blocked_*", "totals", *(more if steps.options.all else ()))


def incidents(steps):
    root_needed()
    steps.ready("gcc")
    steps.driver("python3", "-B", "tests/incidents/incidents.py", "--workload", steps.program("tests/workload/workload"), "--tsnap",
                 steps.program("src/tsnap"), *(["--all", "--quiet-seconds", "30"] if steps.options.all else []))


def findings_expect_none(folder):
    """Fails if sanitizers found anything. They leave a file for each program, also for one that had too little memory for them."""
    texts = {path: text_of(path) for path in sorted(glob.glob(folder + "/*"))}
    found = {path: text for path, text in texts.items() if FINDING.search(text)}
    for path, text in found.items():
        print("%s:\n%s" % (path, "\n".join(text.splitlines()[:20])))
    if found:
        raise Failed("%d files in %s" % (len(found), folder))


def sanitized(steps):
    """The live tests with a tsnap that the sanitizers watch. It is slow: tests that compare times may fail, and don't count."""
    root_needed()
    steps.ready("gcc")
    steps.ready("sanitize")
    folder = log_path(steps.options, "sanitizers")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chmod(folder, 0o1777)  # a process of tsnap without privileges writes here, too
    watch = "symbolize=0:log_path=" + os.path.join(folder, "found")
    command = ["env", "ASAN_OPTIONS=detect_leaks=0:" + watch, "UBSAN_OPTIONS=print_stacktrace=1:" + watch, "python3", "-B",
               "tests/live/run_live.py", "--tries", "1", "--must-run", "--jobs", str(min(JOBS + 1, 8)),
               "--workload", steps.program("tests/workload/workload"), "--tsnap", os.path.join(steps.build, "sanitize/src/tsnap")]
    tee(command, steps.log("sanitized-tests"))
    results = RESULT.findall(text_of(steps.log("sanitized-tests")))
    if not results or int(results[-1][0]) < SANITIZED_LEAST:
        raise Failed("hardly any test passed: %s" % results)
    steps.check("faults that the sanitizers found", findings_expect_none, folder)


def vm(steps):
    """Runs the guests; --allow-skip vm-KERNEL goes on without a kernel that can't be had."""
    root_needed()
    steps.ready("gcc")
    allowed = [word for kind in steps.options.allow_skip for word in ("--allow-skip", kind)]
    steps.driver("tests/vm/matrix", *(["-a"] if steps.options.all else []), *allowed)
    if steps.options.all:
        steps.driver("python3", "-B", "tests/vm/cuts.py", steps.program("src/tsnap"), steps.program("tests/workload/workload"))


def cpu_refused(steps, cpu):
    """Configuring for the CPU must fail with a message that names it."""
    log, tree = steps.log("refused-" + cpu), os.path.join(steps.build, "refused")
    shutil.rmtree(tree, ignore_errors=True)
    with open(log, "wb") as file:
        status = subprocess.run(["cmake", "-S", TOP, "-B", tree, "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=" + cpu],
                                stdout=file, stderr=file, check=False).returncode
    if status == 0 or "tsnap does not run on %s yet" % cpu not in text_of(log):
        raise Failed("exit status %d, see %s" % (status, log))


def arm64(steps):
    steps.check("cross builds", steps.ready, "arm64")
    for cpu in "riscv64", "ppc64le", "s390x", "i686":
        steps.check(cpu + " is refused", cpu_refused, steps, cpu)
    if steps.failed > 0:
        return
    root_needed()
    root, kernel = answer("tests/arm64/sysroot-make"), answer("tests/vm/kernel-fetch", "6.1-arm64")
    log = steps.log("vm-6.1-arm64")
    # the emulated machine needs one CPU; the other tests have the rest
    boot = ["nice", "-n", "-5", "tests/vm/boot", "-t", "1500", "-o", log_path(steps.options, "vm-6.1-arm64"), "-r", root, kernel,
            "tests/vm/guest", os.path.join(steps.build, "arm64/src/tsnap"), os.path.join(steps.build, "arm64/tests/workload/workload"),
            "smoke", "kprobe", *(["options"] if steps.options.all else [])]
    with open(log, "wb") as file:
        guest = subprocess.Popen(boot, stdout=file, stderr=file)
    steps.ctest("arm64", "^(unit|golden|fuzz)$", os.path.join(TOP, "tests/arm64/within"), root)
    status = guest.wait()
    print(text_of(log), end="")
    steps.driver_ended(status, text_of(log))


EACH, ALL, BESIDE = "each", "all", "beside"
STAGES = (  # in the order in which they run
    Stage("deps", EACH, "install what builds need (packaging/install-deps programs)", packages_of("programs")),
    Stage("gcc", EACH, "build with gcc, optimised, warnings are errors", build_of("build with gcc", build_gcc)),
    Stage("clang", EACH, "build with clang, warnings are errors", build_of("build with clang", build_clang)),
    Stage("sanitize", EACH, "build with clang's address and undefined behaviour sanitizers, with the fuzz targets",
          build_of("build with sanitizers", build_sanitize)),
    Stage("tools", EACH, "install what tests need when they run (packaging/install-deps test), begun before the builds", packages_of("test")),
    Stage("text", BESIDE, "the BPF text, compiled for every plan and held to the limits of old kernels (root)", text),
    Stage("lint", BESIDE, "shellcheck, clang-format, clang-tidy (its analyzer in full with --all), cycles of includes, words, the bench's"
          " figures", lint_all),
    Stage("unit", EACH, "unit tests", ctest_of("gcc", "^unit$")),
    Stage("golden", EACH, "the program on recorded samples: every output format", ctest_of("gcc", "^golden$")),
    Stage("browser", BESIDE, "flame graphs in headless Chromium, folded stacks in speedscope", browser),
    Stage("budget", BESIDE, "user instructions of a sample on its way to the output, against the stored ones",
          ctest_of("gcc", "^budget$")),
    Stage("hostile", BESIDE, "unit, golden and fuzz corpus under the sanitizers", ctest_of("sanitize", "^(unit|golden|fuzz)$")),
    Stage("trees", ALL, "the same on other libbcc, LLVM and compilers: Debian bullseye, trixie and sid in trees (root)", trees),
    Stage("packages", ALL, ".deb and .rpm: built, installed, upgraded, removed; the service under systemd, in new trees of Debian's suites"
          " (root)", packages),
    Stage("bundle", ALL, "the one file that runs anywhere: its parts, its start, its answers in roots without libraries, in new trees of Debian's suites"
          " and on old kernels (root)", bundle),
    Stage("live", EACH, "the workloads against /proc, then the program against them, on this kernel (root)", live),
    Stage("incidents", EACH, "what --findings says of incidents made of real programs; --all: all of them, and loads that are none (root)",
          incidents),
    Stage("sanitized", ALL, "live tests again, with a program that the address and undefined behaviour sanitizers watch (root)", sanitized),
    Stage("vm", EACH, "the program on the oldest and the newest kernel in QEMU; --all: on 4.9 to sid, each source of types and probe (root)",
          vm),
    Stage("arm64", ALL, "cross builds for arm64, their tests under qemu-user, the program on Debian's arm64 kernel in QEMU (root)", arm64),
)
