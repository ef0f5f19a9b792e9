#!/bin/sh
# Check the chart with helm and kubeconform, which have to be installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
helm lint --strict "$here/jointcut-party"
helm template north "$here/jointcut-party" | kubeconform -strict -summary
