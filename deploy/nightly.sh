#!/usr/bin/env bash
# Compare every system of a score table and keep the night's results; for cron or a systemd timer.
# Usage: deploy/nightly.sh SCORES RESULTS_FOLDER [sigdask compare options…]
# crontab: 30 1 * * *  /path/to/deploy/nightly.sh /data/scores.csv /data/results --baseline production
set -euo pipefail
scores=$1 folder=$2
shift 2
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock -n 9 || { echo "the last night's run is still under way" >&2; exit 2; }
"${SIGDASK:-sigdask}" compare "$scores" --json "$folder/$(date +%F).json" "$@" | tee "$folder/$(date +%F).txt"
