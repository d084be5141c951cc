#!/bin/sh
# Install the packages of a lock file, or Recto itself as it stands here. uv does it in seconds; where it finds no
# registry, since it does not read pip's configuration, pip does it.
# Usage: install.sh LOCK | --editable
set -u

# One package has no wheel; what builds it is locked too, so that nothing is downloaded to build it.
builds="--no-build-isolation"
case $1 in
--editable) what="--no-deps -e ." ;;
*) what="--require-hashes --only-binary :all: --no-binary tyme4py -r $1" ;;
esac

# shellcheck disable=SC2086 - these are words
.venv/bin/uv pip install --python .venv/bin/python --system-certs $builds $what ||
    .venv/bin/python -m pip --disable-pip-version-check --no-input install $builds $what
