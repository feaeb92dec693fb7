#!/bin/bash
#
# findings/art_tree_floats.sh
#	  art-tree: negative floats are in the tree the wrong way round, and a range misses some.
#
# The guess, before it was run: the crate's key types Float32 and Float64 order as the numbers
# do, as its signed integers do, for the crate says that keys must keep the order.
#
# What happens: art-tree 0.2.0 inverts the sign bit only.  The bits of a negative float grow as
# the number falls, so these need all bits inverted.  Iteration gives -0.5 before -3, and the
# range from -2 to 1 gives -3, and neither -1 nor -0.5.
# Seen on 2026-12-01 with the version named below.
#
# Needs cargo; builds in a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crate art-tree=0.2.0 <<'END'
use art_tree::{Art, Float64};

fn main() {
    let mut tree = Art::new();
    for v in [-3.0, -1.0, -0.5, 0.5, 1.0, 2.0] {
        tree.insert(Float64::from(v), v);
    }
    println!("all: {:?}", tree.iter().map(|e| *e.1).collect::<Vec<f64>>());
    let some = tree.range(Float64::from(-2.0)..=Float64::from(1.0));
    println!("-2 to 1: {:?}", some.map(|e| *e.1).collect::<Vec<f64>>());
}
END
[ "$output" = "all: [-0.5, -1.0, -3.0, 0.5, 1.0, 2.0]
-2 to 1: [-3.0, 0.5, 1.0]" ]
verdict $?
