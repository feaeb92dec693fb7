#!/bin/bash
#
# findings/congee_range.sh
#	  congee: a range leaves its end out, so no range has the largest key.
#
# The guess, before it was run: range(3, 5) has 3, 4 and 5, for the documentation of the method
# writes [start, end].
#
# What happens: congee 0.4.1, a concurrent radix tree by the rules of ART with OLC, gives 3 and
# 4.  range(5, 5) gives nothing, whether 5 is there or not.  The largest usize can be inserted
# and found, keys() lists it, and no range can give it.
# Seen on 2026-12-01 with the version named below.
#
# Needs cargo; builds in a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crate congee=0.4.1 <<'END'
use congee::Congee;

fn main() {
    let tree = Congee::<usize, usize>::default();
    let guard = tree.pin();
    for k in [3, 4, 5, usize::MAX] {
        tree.insert(k, k, &guard).unwrap();
    }
    for (name, from, to) in [("3 to 5", 3, 5), ("5 to 5", 5, 5), ("5 to the largest", 5, usize::MAX)] {
        let mut found = [(0, 0); 8];
        let n = tree.range(&from, &to, &mut found, &guard);
        println!("{name}: {:?}", found[..n].iter().map(|e| e.0).collect::<Vec<_>>());
    }
    println!("the largest, by get: {}", tree.get(&usize::MAX, &guard).is_some());
}
END
[ "$output" = "3 to 5: [3, 4]
5 to 5: []
5 to the largest: [5]
the largest, by get: true" ]
verdict $?
