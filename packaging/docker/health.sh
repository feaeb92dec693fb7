#!/bin/sh
#
# packaging/docker/health.sh
#	  Healthy: the server takes connections, and artidx answers in it.
#
set -eu
user=${POSTGRES_USER:-postgres}
[ "$(psql -X -q -A -t -U "$user" -d postgres -c 'SELECT count(*) > 0 FROM artidx_memory')" = t ]
