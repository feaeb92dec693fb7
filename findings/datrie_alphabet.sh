#!/bin/bash
#
# findings/datrie_alphabet.sh
#	  datrie: a key with a letter outside the trie's alphabet is set without an error, and is not there.
#
# The guess, before it was run: t["Z"] = 1 raises where the alphabet has only a to z, as a dictionary
# raises for what it cannot hold; and keys() comes in the order in which the alphabet was given.
#
# What happens: python3-datrie 0.8.2 takes the key and drops it.  len() does not count it, and "in" denies it.
# A key with a zero character loses what follows: it replaces the value of the key before it.
# keys() comes in the order of code points, whatever the order of the alphabet.
# Seen on 2026-12-01 with the package named below.
#
# Needs apt and Debian 12's own python3; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WITH=
fetch python3-datrie=0.8.2-4+b1
output=$(PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 - <<'PYTHON'
import string
import datrie

t = datrie.Trie(string.ascii_lowercase)
for key in ("a", "Z", "caf\u00e9"):
	t[key] = 1
print("set a, Z and caf\u00e9:".encode("ascii", "replace").decode(), len(t), t.keys(), "Z" in t)
t = datrie.Trie(string.ascii_lowercase)
t["foo"] = 1
t["foo\0bar"] = 2
print("foo, and foo with more behind a zero:", t.items())
t = datrie.Trie(alphabet="zyxabc")
for key in "axzb":
	t[key] = 1
print("alphabet zyxabc:", t.keys())
PYTHON
)
echo "$output"
[ "$output" = "set a, Z and caf?: 1 ['a'] False
foo, and foo with more behind a zero: [('foo', 2)]
alphabet zyxabc: ['a', 'b', 'x', 'z']" ]
verdict $?
