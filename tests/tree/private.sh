# shellcheck shell=bash
# For scripts that mount something and run much, and must leave nothing of both when they are interrupted; sourced.

# private_enter ARGUMENT...: runs the script again with the same arguments in a mount namespace of its own: what is mounted there
# ends with it.
private_enter()
{
	# exec keeps the process: the mark of another one means nothing
	[ "${TSNAP_PRIVATE:-}" = $$ ] || TSNAP_PRIVATE=$$ exec unshare --mount --propagation private "$0" "$@"
}

# group_run COMMAND...: in a process group of its own that ends with this script.
group_run()
{
	local status=0
	set -m
	"$@" </dev/null &
	# shellcheck disable=SC2064 # this group
	trap "kill -- -$! 2>/dev/null; exit 143" INT TERM HUP
	wait $! || status=$?
	trap - INT TERM HUP
	set +m
	return $status
}
