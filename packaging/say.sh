# shellcheck shell=bash
# Functions by which all scripts print messages; sourced. Messages go to standard error, because some scripts print results on
# standard output.

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die WORDS...: prints one line (what failed, why, what to do) and ends the script.
die()
{
	say "$@"
	exit 1
}
