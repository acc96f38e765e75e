#!/usr/bin/env bash
# Questions and answers of the independent oracle around `webstrata query`.
#
#   tests/interop/oracle.sh QUESTIONS SEED CAPTURES...
#
# CAPTURES: *.jsonl, *.jsonl.gz, *.parquet (needs pyarrow). Builds one store from them, asks QUESTIONS questions, once of
# its layers and once of cells of each encoding that CODECS names (strata if it is not set), and prints how many answers
# are wrong; exit code 1 where any is. The oracle is tools/oracle.py in the directory of shared test data:
# WEBSTRATA_SHARED, or `shared` beside this workspace. WEBSTRATA: the binary, if it is not on the PATH.
set -euo pipefail
if [ $# -lt 3 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
questions=$1 seed=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
oracle=${WEBSTRATA_SHARED:-$here/../../../shared}/tools/oracle.py
webstrata=${WEBSTRATA:-webstrata}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" "$oracle" make "$@" --queries "$questions" --seed "$seed" --out "$work/q"
"$webstrata" build --out "$work/store" "$@"
ask() {
    echo "from $1:"
    time "$webstrata" query "$work/store" < "$work/q.queries.jsonl" > "$work/answers.jsonl"
    "$python" "$here/digits.py" < "$work/answers.jsonl" > "$work/digits.jsonl"
    "$python" "$oracle" compare "$work/q.expected.jsonl" "$work/digits.jsonl"
}
ask layers
for codec in ${CODECS:-strata}; do
    "$webstrata" cells "$work/store" --codec "$codec"
    ask "cells, $codec"
done
