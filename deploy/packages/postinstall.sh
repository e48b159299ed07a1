#!/bin/sh
# After an installation or an upgrade. The service is neither enabled nor started: replayd sends load, and only an operator says to which
# server. A service that runs already gets the new binary.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart replayd.service
fi
