"""Clients that know what must be so, beside faults: test/faults/README.md says all."""
