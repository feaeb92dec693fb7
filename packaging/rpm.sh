#!/bin/bash
#
# packaging/rpm.sh
#	  An RPM of what is committed, by packaging/artidx.spec, for the PostgreSQL of PG_CONFIG;
#	  "make rpm" calls it.
#
#	OUT=dir		where it goes (build-rpm in the tree)
#
# rpmbuild may be Debian's: it builds, packs and is asked what it packed, though its database
# knows no package that the spec requires.  rpmlint judges the spec, where it is, and
# what it says of the package is in OUT/rpmlint.log.
#
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"

: "${OUT:=$TREE/build-rpm}"
command -v rpmbuild >/dev/null 2>&1 && command -v unzip >/dev/null 2>&1 ||
	art_die "missing programs.  As root: apt-get install rpm rpmlint unzip, or dnf install rpm-build rpmlint unzip"
pgc=$(art_find_pg_config || command -v pg_config) || art_die "no PostgreSQL with PGXS found"
major=$("$pgc" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) && [ -w "$OUT" ] || art_die "cannot write to $OUT"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-rpm.XXXXXX") || art_die "no temporary directory"
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

OUT=$WORK/SOURCES bash "$TREE/packaging/dist.sh" >/dev/null || art_die "no archive"
nodeps=()
rpm -q rpm >/dev/null 2>&1 || nodeps=(--nodeps)
rpmbuild -ba "${nodeps[@]}" --define "_topdir $WORK" --define "pgmajor $major" --define "pg_config $pgc" \
	"$TREE/packaging/artidx.spec" >"$OUT/build.log" 2>&1 </dev/null ||
	{ tail -40 "$OUT/build.log" >&2; art_die "rpmbuild failed, log: $OUT/build.log"; }
for f in "$WORK"/SRPMS/*.rpm "$WORK"/RPMS/*/*.rpm; do
	cp "$f" "$OUT/" && echo "$OUT/${f##*/}"
done
rpm=$(ls "$OUT/artidx_$major"-*.rpm | grep -v '\.src\.rpm$' | tail -1)
# what a package must have: the library, both control files, the scripts
for f in "$("$pgc" --pkglibdir)/artidx.so" "$("$pgc" --sharedir)/extension/"{artidx,artidx_debug}.control; do
	rpm -qpl "$rpm" 2>/dev/null | grep -qxF "$f" || art_die "$rpm has no $f"
done
if command -v rpmlint >/dev/null 2>&1; then
	# what it says of the package is of the distribution's rpmbuild, too: nobody signs it here
	rpmlint "$rpm" >"$OUT/rpmlint.log" 2>&1
	rpmlint "$TREE/packaging/artidx.spec" >>"$OUT/rpmlint.log" 2>&1 ||
		{ cat "$OUT/rpmlint.log" >&2; art_die "rpmlint is not content with the spec"; }
	art_say "rpmlint, of the spec: $(tail -1 "$OUT/rpmlint.log")"
fi
