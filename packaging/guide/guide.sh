# shellcheck shell=bash
# Functions of the guide's scripts: a temporary directory, programs that end with the script, and tsnap. TSNAP: the program
# (default: build/src/tsnap, else the installed one).
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../say.sh
. "$top/packaging/say.sh"

[ "$(id -u)" = 0 ] || die "must be root: tsnap loads BPF programs"
tsnap=${TSNAP:-$top/build/src/tsnap}
[ -x "$tsnap" ] || tsnap=$(command -v tsnap) || die "no tsnap: packaging/try builds one, or TSNAP=PROGRAM"
work=$(mktemp -d /var/tmp/tsnap-guide.XXXXXX)
chmod 755 "$work"
started=()
database=

guide_end()
{
	[ -z "$database" ] || database_run pg_ctl -D "$database" -m immediate stop >/dev/null || true
	# each started program is the leader of a session of its own
	for pid in "${started[@]}"; do
		kill -- "-$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$work"
}
trap guide_end EXIT
trap 'exit 130' INT TERM

# needs PROGRAM PACKAGE: ends the script if the program is missing, and says what to install.
needs()
{
	command -v "$1" >/dev/null || die "$1 is missing: apt install $2"
}

# start COMMAND...: runs the command in the background until the script ends.
start()
{
	setsid "$@" >/dev/null 2>&1 </dev/null &
	started+=($!)
}

# show COMMAND...: prints the command as a user types it, then runs it with $tsnap.
show()
{
	printf '# %s\n' "$(printf '%s ' "$@" | sed 's/ $//')"
	shift
	"$tsnap" "$@"
}

database_run()
{
	(cd / && setpriv --reuid postgres --regid postgres --init-groups "$@")
}

# Starts a PostgreSQL of the script's own in $work, reached through a socket there; the system's is not touched.
database_start()
{
	local bin
	bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
	[ -n "$bin" ] || die "PostgreSQL is missing: apt install postgresql"
	PATH=$bin:$PATH
	export PGHOST=$work PGUSER=postgres PGDATABASE=postgres
	install -d -o postgres "$work/data"
	chown postgres "$work"
	database_run initdb -A trust -D "$work/data" >/dev/null
	database_run pg_ctl -D "$work/data" -w -l "$work/log" -o "-c listen_addresses= -c unix_socket_directories=$work" start >/dev/null
	database=$work/data
}
