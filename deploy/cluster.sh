#!/usr/bin/env bash
# Start a dask scheduler and workers on this machine, on loopback; stop them with Ctrl-C.
# Usage: deploy/cluster.sh [WORKERS] [SCHEDULER_FILE]
# Then:  sigdask compare … --cluster scheduler.json
set -euo pipefail
workers=${1:-$(getconf _NPROCESSORS_ONLN)}
file=${2:-scheduler.json}
dask=${DASK:-dask}
rm -f "$file"
trap 'status=$?; trap - EXIT; kill $(jobs -p) 2>/dev/null || true; wait; exit $status' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$dask" scheduler --host 127.0.0.1 --port 0 --dashboard-address 127.0.0.1:0 --scheduler-file "$file" &
scheduler=$!
until [ -s "$file" ]; do
    if ! kill -0 "$scheduler" 2>/dev/null; then
        wait "$scheduler" && status=1 || status=$?
        echo "$dask scheduler ended with status $status before it wrote $file" >&2
        exit "$status"
    fi
    sleep 0.1
done
"$dask" worker --scheduler-file "$file" --host 127.0.0.1 --dashboard-address 127.0.0.1:0 \
    --nworkers "$workers" --nthreads 1 &
wait
