# shellcheck shell=bash
# Functions of the tests of packages; sourced after packaging/say.sh and tests/archive.sh.

passed=0 failed=0 skipped=0

# check WORDS COMMAND...: runs and counts one test. Exit status 77 is a skip; the command says why.
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

# root_make SUITE DIR: makes a minimal tree, with the archive of this machine; fetched packages are kept in the cache.
root_make()
{
	# shellcheck disable=SC2154 # cache and keyring are those of tests/archive.sh
	local archives=$cache/apt/$1/archives key=$keyring
	mkdir -p "$2" "$archives"
	debootstrap --variant=minbase --keyring="$key" --cache-dir="$archives" "$1" "$2" \
		"$(mirror_address Debian http://deb.debian.org/debian)"
	cp /etc/resolv.conf "$2/etc/"
	cp -r /etc/apt/apt.conf.d/. "$2/etc/apt/apt.conf.d/"
	tree_mount "$2"
}

# inside DIR COMMAND...: runs the command in the tree DIR.
inside()
{
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$@"
}
