#!/bin/sh
# What a job of an experiment made from this recipe runs. Replace the echo with your own trainer.
set -eu
echo "training in {{"${"}}{{.Names.EnvPrefix}}WORK_DIR:-.}"
