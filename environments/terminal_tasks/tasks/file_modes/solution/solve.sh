#!/bin/sh
set -e
cd /app
find site -type f -exec chmod 644 {} +
find site -type f -name '*.key' -exec chmod 600 {} +
find site -type f -exec sh -c 'head -c 2 "$1" | grep -q "^#!" && chmod 755 "$1" || true' sh {} \;
