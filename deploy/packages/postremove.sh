#!/bin/sh
# After a removal: systemd forgets the unit. What replayd wrote, /var/lib/private/replayd, stays until apt purges the package.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
  rm -rf /var/lib/private/replayd /var/lib/replayd
fi
