#!/bin/sh
# After a removal: systemd forgets the unit. What replayd wrote, /var/lib/private/replayd, stays until apt purges the package.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
  rm -rf "${DPKG_ROOT:-}/var/lib/private/replayd" "${DPKG_ROOT:-}/var/lib/replayd"
fi
