#!/bin/bash
#
# packaging/dist.sh
#	  The archive for PGXN, of what is committed; "make dist" calls it.
#
#	OUT=dir		where it goes (build-dist in the tree)
#
# packaging/meta.pl checks what the specification 1.0.0 wants of META.json, and of the archive.
# PGXN's own validator is asked, too, where it is: cargo install pgxn_meta.
#
set -eu
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT:-$tree/build-dist}
name=$(perl "$tree/packaging/meta.pl" "$tree/META.json" name)
mkdir -p "$out"
git -C "$tree" archive --format=zip --prefix="$name/" -o "$(cd "$out" && pwd)/$name.zip" HEAD
[ -z "$(git -C "$tree" status --porcelain --untracked-files=no)" ] ||
	echo "# what is not committed is not in the archive" >&2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git -C "$tree" archive --prefix="$name/" HEAD | tar -C "$dir" -xf -
perl "$tree/packaging/meta.pl" "$dir/$name/META.json" check
! command -v pgxn_meta >/dev/null 2>&1 || pgxn_meta "$dir/$name/META.json" >&2
echo "$(cd "$out" && pwd)/$name.zip"
