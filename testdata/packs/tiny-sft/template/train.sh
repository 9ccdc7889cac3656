#!/bin/sh
# Starts the run; replace the echo with your own trainer.
set -eu
echo "training with ${FORGE_RECIPE:-no recipe} in ${FORGE_WORK_DIR:-.}"
