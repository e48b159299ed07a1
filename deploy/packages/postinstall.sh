#!/bin/sh
# After an installation or an upgrade. The service is neither enabled nor started: replayd sends load, and only an operator says to which
# server. A service that runs already gets the new binary. DPKG_ROOT is dpkg's, for an installation into another root.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart replayd.service
fi
