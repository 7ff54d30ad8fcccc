# shellcheck shell=bash
# What test runs are made of: builds, and tests that count; sourced after packaging/say.sh.
# Of the caller: top (the sources), build (the folder of builds), jobs; stage, a name for logs; the counts passed, failed, skipped.
: "${top:?}" "${build:=$top/build-test}" "${jobs:=$(nproc)}" "${stage:=tests}"

# A parallel build goes on for a while after its first error: that one first, then the log's end.
failure_show()
{
	grep -E '(error|Error|warning): ' "$1" | head -n 10 || true
	echo "... the end of $1:"
	tail -n 20 "$1"
}

# build_tree NAME CMAKE-ARGUMENT...: configures and builds build-test/NAME. A stage may ask for a tree that another one built, or builds now.
# What was compiled before, in this clone or another, comes out of ccache's cache where there is one.
build_tree()
{
	local name=$1 status=0 building launcher=()
	shift
	! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
	exec {building}>"$build/$name.building"
	flock "$building"
	cmake -S "$top" -B "$build/$name" -DTSNAP_WERROR=ON ${launcher[@]+"${launcher[@]}"} "$@" &&
		CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1 cmake --build "$build/$name" -- -j"$jobs" || status=$?
	exec {building}>&-
	return $status
}

# check WORDS COMMAND...: one test of a stage that has no runner of its own. Exit status 77 is a skip; the command says why.
check()
{
	local words=$1 status=0
	shift
	"$@" || status=$?
	case $status in
	0) ((passed += 1)) ;;
	77) ((skipped += 1)) && say "skipped: $words" ;;
	*) ((failed += 1)) && say "FAILED: $words" ;;
	esac
	return 0
}

# Adds the counts of a driver's last line "N passed, N failed, N skipped".
count_line()
{
	if [[ $1 =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
		((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3], 1))
	else
		say "no result line"
		((failed += 1))
	fi
}

# ctest_run TREE LABELS [COMMAND...]: of a tree, or of a folder of it; counted from ctest's own line per test, whose form is the same from CMake 3.13 on. COMMAND runs ctest.
ctest_run()
{
	local output=$build/$1/ctest.log status=0
	(cd "$build/$1" && "${@:3}" ctest -L "$2" -j"$jobs") 2>&1 | tee "$output" || status=$?
	count_line "$(awk '/^ *[0-9]+\/[0-9]+ Test +#/ {
			if (/ Passed /) passed++; else if (/\*\*\*Skipped|\*\*\*Not Run \(Disabled\)/) skipped++; else failed++ }
		END { printf "%d passed, %d failed, %d skipped", passed, failed, skipped }' "$output")"
	if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		((failed += 1))
	fi
}

# driver_run COMMAND...: a driver that ends with the result line, or with exit status 77 where nothing can run.
driver_run()
{
	local output=$build/driver-$stage.log status=0
	"$@" 2>&1 | tee "$output" || status=$?
	if [ "$status" = 77 ]; then
		((skipped += 1))
		return
	fi
	count_line "$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$output" | tail -n 1)"
	if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		say "exit status $status"
		((failed += 1))
	fi
}
