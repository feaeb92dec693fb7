# findings/crate.sh
#	  A small Rust program that uses one crate, in a temporary directory (sourced).
#
#	crate NAME=VERSION		builds the program on standard input with that crate, runs it,
#							and keeps what it printed in $output
#	verdict STATUS			the last line, and the exit status
#
# Needs cargo, which fetches the crate and what it depends on.  Leaves nothing.
#
set -u
export LC_ALL=C

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

crate()
{
	mkdir -p "$tmp/src"
	printf '%s\n' '[package]' 'name = "finding"' 'edition = "2021"' '[dependencies]' "${1%%=*} = \"=${1#*=}\"" >"$tmp/Cargo.toml"
	cat >"$tmp/src/main.rs"
	(cd "$tmp" && cargo build --quiet) >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
	output=$("$tmp/target/debug/finding" 2>&1)
	printf '%s\n' "$1" "$output"
}

# verdict: as said, or not
verdict()
{
	[ "$1" -eq 0 ] && echo "as described" || { echo "NO LONGER as described"; exit 1; }
}
