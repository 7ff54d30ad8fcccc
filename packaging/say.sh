# shellcheck shell=bash
# What every script here says things with; sourced. Progress goes to standard error: some scripts answer on standard output.

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# One line, then the end: what failed, why, what to do.
die()
{
	say "$@"
	exit 1
}
