#!/bin/bash
#
# findings/btrees_values.sh
#	  BTrees (ZODB's): byValue() divides the values, a tree with float values keeps half of their digits, and
#	  two trees with the same entries differ.
#
# The guess, before it was run: byValue(10) of {1: 10, 2: 25} gives (25, 2) and (10, 1), the values that are
# 10 or more, as items() gives them.  LFBTree keeps Python's floats.  Two equal trees are equal.
#
# What happens: python3-btrees 4.3.1 gives (2, 2) and (1, 1): each value of a tree of integers is divided by the
# least one that was asked for.  byValue(0) gives the values.  "F" is a float of 32 bits: 0.1 comes back as
# another number, and 16777217 as 16777216.  == of two trees asks whether they are one object.
# Seen on 2026-12-01 with the package named below, and with BTrees 6.5 of PyPI.
#
# Needs apt and Debian 12's own python3; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WITH=
fetch python3-btrees=4.3.1-5+b1
output=$(PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 - <<'PYTHON'
from BTrees.IIBTree import IIBTree
from BTrees.LFBTree import LFBTree

t = IIBTree({1: 10, 2: 25, 3: 9})
print("by value, from 10:", list(t.byValue(10)), "from 0:", list(t.byValue(0)))
f = LFBTree({1: 0.1, 2: 16777217.0})
print("floats:", f[1] == 0.1, f[2])
print("the same entries:", IIBTree({1: 10}) == IIBTree({1: 10}))
PYTHON
)
echo "$output"
[ "$output" = "by value, from 10: [(2, 2), (1, 1)] from 0: [(25, 2), (10, 1), (9, 3)]
floats: False 16777216.0
the same entries: False" ]
verdict $?
