#!/bin/bash
#
# test/evidence.sh NAME COMMAND SHOWS LABEL VALUE...
#	  With EVIDENCE=1: what a run came to, as doc/evidence/NAME.tsv and in doc/evidence.md
#	  (art_evidence of test/lib.sh), for a run that is no bash script.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

art_evidence "$@"
