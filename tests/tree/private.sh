# shellcheck shell=bash
# Functions for scripts that mount file systems and start processes, and must leave none of them when they are interrupted; sourced.

# private_enter ARGUMENT...: runs the script again with the same arguments in a mount namespace of its own; mounts there end with
# the script.
private_enter()
{
	# exec keeps the process id, so only a mark with our own id counts
	[ "${TSNAP_PRIVATE:-}" = $$ ] || TSNAP_PRIVATE=$$ exec unshare --mount --propagation private "$0" "$@"
}

# group_run COMMAND...: runs the command in a process group of its own that ends with this script.
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

# tree_mount TREE: mounts the file systems that programs in the tree TREE need, in a mount namespace of its own (private_enter). The tree
# itself becomes a mount, so that programs in it can mount for themselves.
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
