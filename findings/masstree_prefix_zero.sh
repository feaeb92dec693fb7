#!/bin/bash
#
# findings/masstree_prefix_zero.sh
#	  masstree: a scan of the prefix "a\0" gives the key "a", and that of "\0" the empty key.
#
# The guess, before it was run: scan_prefix() gives the keys that begin with the prefix, for keys
# are any bytes, and "a" and "a\0" are two keys.
#
# What happens: masstree 0.9.5 keeps keys as the paper does, in slices of eight bytes with zeros
# behind a shorter one.  get() and range() tell "a" from "a\0" by the length.  scan_prefix()
# compares the slices alone.  Prefixes that end with a zero byte are those of numbers: the scan
# for the high bytes 00 01 00 gives a key of 00 01.
# Seen on 2026-12-01 with the version named below.
#
# Needs cargo; builds in a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crate masstree=0.9.5 <<'END'
fn main() {
    let tree = masstree::MassTree::<u64>::new();
    for (v, k) in (1..).zip([&b""[..], b"a", b"a\0b", b"b", b"\0\x01", b"\0\x01\0\x02"]) {
        tree.insert(k, v);
    }
    let guard = tree.guard();
    for prefix in [&b"a\0"[..], b"\0\x01\0", b"c\0"] {
        let mut found = Vec::new();
        tree.scan_prefix(prefix, |k, _| { found.push(k.escape_ascii().to_string()); true }, &guard);
        println!("{}: {:?}", prefix.escape_ascii(), found);
    }
    println!("get a: {:?}, a\\0: {:?}", tree.get(b"a"), tree.get(b"a\0"));
}
END
[ "$output" = 'a\x00: ["a", "a\\x00b"]
\x00\x01\x00: ["\\x00\\x01", "\\x00\\x01\\x00\\x02"]
c\x00: []
get a: Some(2), a\0: None' ]
verdict $?
