#!/usr/bin/env bash
# The arms of arms_gpu.toml in three processes on one GPU, as small batches of one process leave most of it idle.
# Usage: experiments/comparison/arms_gpu.sh KEPT [FILE]
# KEPT, a table of results (.jsonl), gets the finished ones; FILE is another file with the same arms. Called again, it goes on.
set -euo pipefail
cd "$(dirname "$0")/../.."
kept=${1:?a table for the finished results, such as results.jsonl}
file=${2:-experiments/comparison/arms_gpu.toml}
python=${PYTHON:-python}
processes=()
# MEXMA's arms take longest: one in each process, or few others beside it.
for arms in "mexma infonce backbone" "mexma_contrastive semantic labse" "ems anchor distill calibrated"; do
  # shellcheck disable=SC2086  # the names are words
  "$python" experiments/arms.py "$file" --kept "$kept" --arms $arms &
  processes+=($!)
done
failed=0
for process in "${processes[@]}"; do
  wait "$process" || failed=1
done
exit $failed
