#!/usr/bin/env bash
# Start a dask scheduler and workers on this machine, on loopback; stop them with Ctrl-C.
# Usage: deploy/cluster.sh [WORKERS] [SCHEDULER_FILE]
# Then:  sigdask compare … --cluster scheduler.json
set -euo pipefail
workers=${1:-$(getconf _NPROCESSORS_ONLN)}
file=${2:-scheduler.json}
dask=${DASK:-dask}
rm -f "$file"
trap 'trap - EXIT; kill 0' EXIT INT TERM
"$dask" scheduler --host 127.0.0.1 --port 0 --dashboard-address 127.0.0.1:0 --scheduler-file "$file" &
until [ -s "$file" ]; do sleep 0.1; done
"$dask" worker --scheduler-file "$file" --host 127.0.0.1 --dashboard-address 127.0.0.1:0 \
    --nworkers "$workers" --nthreads 1 &
wait
