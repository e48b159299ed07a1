#!/bin/sh
# Before a removal. dpkg calls it with upgrade and rpm with 1 where another version follows: the service then runs on.
set -e
case "${1:-}" in
upgrade | failed-upgrade | deconfigure | 1) exit 0 ;;
esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl disable --now replayd.service
fi
