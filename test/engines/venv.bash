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

# pages NAME COMMAND…: starts the server with a free port, records its pages as NAME in $out, and stops it.
pages() {
  local port url=http://127.0.0.1 server
  port=$(python3.11 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "${@:2}" --port "$port" >"$folder/server.log" 2>&1 &
  server=$!
  # shellcheck disable=SC2064 # this server, now
  trap "kill $server 2>/dev/null || true" EXIT
  for _ in $(seq 300); do
    if curl -sf "$url:$port/health" >/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || { tail -n 20 "$folder/server.log" >&2; return 1; }
    sleep 1
  done
  python3.11 test/engines/record.py "$url:$port" "$out" "$1"
  kill "$server"
  wait "$server" || true
  trap - EXIT
}
