#!/usr/bin/env bash
# Verifies on a machine with an NVIDIA GPU, without network, what cannot be verified anywhere else, in under 10 minutes:
#
#   timeout 590 bash tests/gpu/verify.sh OUT [STEP...]
#
# OUT gets log.txt, results.json (a JSON line for each figure, each thing that must hold and each step), env.json,
# rc_table.json, killed.tar.gz (a trace whose program was killed, with CUPTI's own records) and ncu.csv. Each step has
# a time of its own, none stops the next one, and the most valuable come first: what has no time left is skipped, by
# name. The exit code is 0 if everything that could run holds. VERIFY_QUICK=1: few repetitions; VERIFY_SECONDS: for all
# steps together (540); PYTHON: the interpreter (python3).
set -uo pipefail
out="$(mkdir -p "${1:?where to? verify.sh OUT}" && cd "$1" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="${PYTHON:-python3}"
budget="${VERIFY_SECONDS:-540}"
only=" ${*:2} "
failed=0
: >"$out/results.json"
exec > >(tee "$out/log.txt") 2>&1

ended() { # STEP STATUS [REASON]
  STEP="$1" STATUS="$2" REASON="${3:-}" TOOK="$took" "$python" -c '
import json, os
e = os.environ
print(json.dumps({"step": e["STEP"], "status": e["STATUS"], "seconds": int(e["TOOK"]), "reason": e["REASON"]}))' |
    tee -a "$out/results.json"
}

step() { # SECONDS STEP COMMAND...
  local seconds="$1" name="$2" began=$SECONDS left=$((budget - SECONDS)) code reason
  shift 2
  took=0
  if [[ $only != "  " && $only != *" $name "* ]]; then return; fi
  printf '\n== %s\n' "$name"
  if ((left < 10)); then
    ended "$name" skipped "no time is left: $budget s are over"
    return
  fi
  timeout -k 5 "$((seconds < left ? seconds : left))" "$@" 2>&1 | tee "$out/.step"
  code=${PIPESTATUS[0]}
  took=$((SECONDS - began))
  reason="$(grep -v '^{' "$out/.step" | tail -n 1 | cut -c 1-500)"
  rm -f "$out/.step"
  case "$code" in
    0) ended "$name" done ;;
    77) ended "$name" skipped "$reason" ;;
    124 | 137) ended "$name" failed "it took longer than $seconds s" && failed=1 ;;
    *) ended "$name" failed "exit code $code: $reason" && failed=1 ;;
  esac
}

programs="$here/programs"
driver() { step "$1" "$2" "$python" "$programs/steps.py" "$2" "$out"; }
torch() { step "$1" "$2" "$python" "$programs/torch_steps.py" "$2" "$out"; }

# strobe itself: the one that is there, else one that the machine's own tools build, into a folder beside OUT.
build() {
  if "$python" -c 'import strobe' 2>/dev/null; then return; fi
  if ! "$python" -c 'import nanobind, scikit_build_core'; then # which says which one is missing
    return 77
  fi
  "$python" -m pip install -q --no-build-isolation --no-deps --target "$(dirname "$out")/strobe-site" "$here/../.."
}
export -f build
export python here out

export PYTHONDONTWRITEBYTECODE=1
driver 20 environment
step 120 build bash -c build
if [[ -d "$(dirname "$out")/strobe-site" ]]; then export PYTHONPATH="$(dirname "$out")/strobe-site${PYTHONPATH:+:$PYTHONPATH}"; fi
driver 30 declarations
driver 30 codes
driver 40 program_in_c
driver 30 levels
torch 90 training
driver 90 exits
driver 30 killed
driver 120 overhead
torch 90 training_overhead
torch 40 beside_kineto
driver 40 nvml
driver 60 ncu
driver 100 graph_leak

printf '\n'
took=$SECONDS
if ((failed)); then ended all failed "see the steps above"; else ended all "done"; fi
exit "$failed"
