#!/bin/sh
# Make the folders that compose.yaml mounts: an identity and a configuration each, everybody's certificate installed.
# In real life each party does this at home and sends only its certificate; here one machine plays all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-"$here/compose"}
names="hospital-a hospital-b hospital-c"
for name in $names; do
    party init --name "$name" --dir "$folder/$name" --listen 0.0.0.0:7400 --data /data/table.csv
    cp "$here/three-machines/$name.yaml" "$folder/$name/party.yaml"
done
coordinator init --name coordinator --dir "$folder/coordinator"
cp "$here/three-machines/coordinator.yaml" "$folder/coordinator/coordinator.yaml"
for name in $names coordinator; do
    for other in $names coordinator; do
        if [ "$name" != "$other" ]; then
            cp "$folder/$other/tls/certificate.pem" "$folder/$name/peers/$other.pem"
        fi
    done
done
mkdir -p "$folder/coordinator/out"
# The containers run as user 10001; on your own machine give that user, and nobody else, the keys.
if [ "$(id -u)" = 0 ]; then chown -R 10001 "$folder"; fi
