# For the scripts of this folder, which source it with the checkout as their working folder.
# shellcheck shell=bash

# venv ENGINE VERSION PINS: a virtual environment with exactly what PINS lists, and the tiny model, made once.
# It sets folder, where it is, and site, its packages.
venv() {
  folder=$PWD/.cache/engines/$1_$2
  site=$folder/lib/python3.11/site-packages
  if [ -e "$folder/ready" ]; then return; fi
  command -v python3.11 >/dev/null || cannot "there is no python3.11"
  rm -rf "$folder"
  python3.11 -m venv "$folder" || cannot "python3.11 makes no virtual environment"
  # Without --no-deps pip would want torch's own index for a version "+cpu".
  "$folder/bin/python" -m pip install -q --no-deps -r "$3" >&2 || cannot "the packages of $3 did not come"
  "$folder/bin/python" test/engines/tinymodel.py "$folder/model" >&2
  touch "$folder/ready"
}

# up COMMAND…: starts the server on a free port; sets pid, url and log; waits until $health answers, and fails if it does not.
up() {
  local port
  log=$folder/$(basename "$1").log
  port=$(python3.11 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  url=http://127.0.0.1:$port
  "$@" --port "$port" >"$log" 2>&1 &
  pid=$!
  pids="${pids:-} $pid"
  # shellcheck disable=SC2064 # these, now
  trap "kill $pids 2>/dev/null || true" EXIT
  for _ in $(seq 900); do
    if curl -sf "$url${health:-/health}" >/dev/null; then return; fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 1
  done
  tail -n 20 "$log" >&2
  echo "$1 ended or is not ready after 15 minutes" >&2
  return 1
}

# down PID stops a server.
down() {
  kill "$1" 2>/dev/null || true
  wait "$1" || true
  pids=${pids/ $1/}
}

# pages NAME COMMAND…: records the pages of a server as NAME in $out.
pages() {
  up "${@:2}"
  python3.11 test/engines/record.py "$url" "$out" "$1"
  down "$pid"
}

# answers ORIGIN CASES COMMAND…: records answers of a server of the model "script" in $out. ORIGIN is its name and version;
# CASES are patterns, or nothing for the usual ones. It has a page at $page, or at /metrics, or none if that is empty.
answers() {
  local command=${*:3}
  command=${command//"$folder/bin/"/}
  command=${command//"$folder/"/}
  up "${@:3}"
  PAUSE=${pause:+${behind:-$url}$pause} ONLY=$2 python3.11 test/engines/answers.py "$url" script "$out" "$1" \
    "${command//.cache\/real\//}" "$pid" "${page-$url/metrics}" "$log"
  down "$pid"
}
