# shellcheck shell=bash
# Debian's archive, for scripts that need packages of another suite than the machine's; sourced after packaging/say.sh.
# apt runs on lists, sources and status of its own below the cache, so the machine's stay as they are.
# The archive is the one that the machine itself uses for Debian, else deb.debian.org.
# Environment: TSNAP_VM_CACHE, the cache directory (default /var/cache/tsnap-vm).

cache=${TSNAP_VM_CACHE:-/var/cache/tsnap-vm}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
lists_valid_minutes=720

# The address that the machine gets Debian (LABEL Debian or Debian-Security) from.
mirror_address()
{
	local label=$1 fallback=$2 found
	found=$(apt-get indextargets --format "\$(LABEL) \$(REPO_URI)" 'Created-By: Packages' 2>/dev/null |
		awk -v label="$label" '$1 == label { print $2; exit }') || true
	printf '%s\n' "${found:-$fallback}"
}

# Fills the array `apt` with the options of a private apt for the suite $1, and writes its sources ($2: security suite,
# $3: architecture, amd64 if not given). Its files are in $cache/apt/SUITE, or SUITE-ARCHITECTURE where that is given.
apt_prepare()
{
	local dir=$cache/apt/$1${3:+-$3}
	mkdir -p "$dir"/{lists/partial,archives/partial,parts}
	: >"$dir/status"
	{
		printf 'deb [signed-by=%s] %s %s main\n' "$keyring" \
			"$(mirror_address Debian http://deb.debian.org/debian)" "$1"
		[ "$2" = - ] || printf 'deb [signed-by=%s] %s %s main\n' "$keyring" \
			"$(mirror_address Debian-Security http://deb.debian.org/debian-security)" "$2"
	} >"$dir/sources.list"
	apt=(-o "Dir::State::lists=$dir/lists" -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir"
		-o "Dir::Etc::SourceList=$dir/sources.list" -o "Dir::Etc::SourceParts=$dir/parts"
		-o "Dir::Etc::Preferences=/dev/null" -o "Dir::Etc::PreferencesParts=$dir/parts"
		-o "APT::Architecture=${3:-amd64}" -o "APT::Architectures::=${3:-amd64}" -o APT::Default-Release=
		-o Acquire::Languages=none -o APT::Sandbox::User=root -o Acquire::Retries=3 -q)
}

# Brings the lists in $cache/apt/$1 up to date; says so and goes on with old ones when the archive can't be reached.
lists_update()
{
	local dir=$cache/apt/$1 held
	# A kernel and a tree of one suite may be asked for at the same time.
	exec {held}>"$dir/update.lock"
	flock "$held"
	if [ -n "$(find "$dir/updated" -mmin "-$lists_valid_minutes" 2>/dev/null)" ]; then
		exec {held}>&-
		return 0
	fi
	say "reading the package lists of $1"
	if apt-get "${apt[@]}" -o APT::Update::Error-Mode=any update >"$dir/log" 2>&1; then
		touch "$dir/updated"
	elif [ -e "$dir/updated" ]; then
		say "no new package lists ($(grep -m1 '^[EW]:' "$dir/log" || echo "see $dir/log")); the old ones serve"
	else
		die "no package lists of $1: $(grep -m1 '^[EW]:' "$dir/log" || echo "see $dir/log"); is there a network?"
	fi
	exec {held}>&-
}
