#!/bin/bash
#
# findings/vart_range_after.sh
#	  vart: a range that begins behind a key misses the keys that share its first bytes.
#
# The guess, before it was run: range((Excluded("a1"), Unbounded)) of a1, a2, b1 gives a2 and b1,
# as a BTreeMap does.
#
# What happens: vart 0.11.0, an adaptive radix tree with versions, gives b1 alone.  From the node
# whose bytes are those of the bound nothing comes, whether the bound is a key or not.  Included
# bounds are right, and so are ends.  The usual way to go on after the last key of a page is such a
# range.
# Seen on 2026-12-01 with the version named below.
#
# Needs cargo; builds in a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crate vart=0.11.0 <<'END'
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};
use vart::{art::Tree, VariableSizeKey as Key};

fn main() {
    let keys = ["a1", "a2", "b1"];
    let set: BTreeSet<&str> = keys.into();
    let mut tree = Tree::<Key, u64>::new();
    for (v, k) in (1..).zip(keys) {
        tree.insert(&Key::from_slice(k.as_bytes()), v, v, 0).unwrap();
    }
    for (name, from) in [("from a1", Included("a1")), ("after a1", Excluded("a1")), ("after a0", Excluded("a0"))] {
        let bytes = from.map(|k| Key::from_slice(k.as_bytes()));
        let found = tree.range((bytes, Unbounded)).map(|e| std::str::from_utf8(e.0).unwrap());
        let right = set.range::<&str, _>((from, Unbounded));
        println!("{name}: vart {:?}, BTreeSet {:?}", found.collect::<Vec<_>>(), right.collect::<Vec<_>>());
    }
}
END
[ "$output" = 'from a1: vart ["a1", "a2", "b1"], BTreeSet ["a1", "a2", "b1"]
after a1: vart ["b1"], BTreeSet ["a2", "b1"]
after a0: vart ["b1"], BTreeSet ["a1", "a2", "b1"]' ]
verdict $?
