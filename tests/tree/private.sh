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

# tree_mount TREE: what programs in the tree TREE need, in a mount namespace of its own (private_enter). The tree itself becomes a mount: what
# runs there can then mount for itself.
tree_mount()
{
	local name
	mount --bind "$1" "$1"
	mount -t proc proc "$1/proc"
	mount --rbind /sys "$1/sys"
	mount --rbind /dev "$1/dev"
	for name in tmp run; do
		mount -t tmpfs tmpfs "$1/$name"
	done
}
