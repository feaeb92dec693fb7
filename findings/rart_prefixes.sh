#!/bin/bash
#
# findings/rart_prefixes.sh
#	  rart: the methods that look for prefixes take a &str, and find nothing with it.
#
# The guess, before it was run: tree.prefix_iter("cat") of a tree with "cat" and "catalog" gives
# both, and tree.longest_prefix_value("catalogue") gives that of "catalog".
#
# What happens: rart 0.11.0 makes a key of a string by a NUL behind it, so that no key begins
# another one.  The prefix gets one, too.  prefix_iter("cat") gives "cat" alone, and
# longest_prefix_value("catalogue") nothing.  No error says so.  The README's example makes its
# keys of byte slices, which get none, and works.
# Seen on 2026-12-01 with the version named below.
#
# Needs cargo; builds in a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crate rart=0.11.0 <<'END'
use rart::{AdaptiveRadixTree, KeyTrait, VectorKey};

fn main() {
    let mut strings = AdaptiveRadixTree::<VectorKey, u32>::new();
    let mut slices = AdaptiveRadixTree::<VectorKey, u32>::new();
    let bytes = |s: &str| VectorKey::new_from_slice(s.as_bytes());
    for (k, v) in [("cat", 1), ("catalog", 2)] {
        strings.insert(k, v);
        slices.insert_k(&bytes(k), v);
    }
    println!("&str, keys that begin with cat: {}", strings.prefix_iter("cat").count());
    println!("&str, longest that begins catalogue: {:?}", strings.longest_prefix_value("catalogue"));
    println!("slices, keys that begin with cat: {}", slices.prefix_iter_k(&bytes("cat")).count());
    println!("slices, longest that begins catalogue: {:?}", slices.longest_prefix_value_k(&bytes("catalogue")));
}
END
[ "$output" = "&str, keys that begin with cat: 1
&str, longest that begins catalogue: None
slices, keys that begin with cat: 2
slices, longest that begins catalogue: Some(2)" ]
verdict $?
