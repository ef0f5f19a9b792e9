#!/bin/sh
# Make the folders that compose.yaml mounts: an identity and a configuration each, everybody's certificate installed.
#   compose-setup.sh FOLDER SAMPLES    both may be left out; SAMPLES: relay, for compose.relay.yaml; else three-machines
# In real life each party does this at home and sends only its certificate; here one machine plays all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-"$here/compose"}
samples="$here/${2:-three-machines}"
names=""
for sample in "$samples"/*.yaml; do
    name=$(basename "$sample" .yaml)
    names="$names $name"
    case $name in
    hospital-*)
        party init --name "$name" --dir "$folder/$name" --listen 0.0.0.0:7400 --data /data/table.csv
        cp "$sample" "$folder/$name/party.yaml" ;;
    *)
        coordinator init --name "$name" --dir "$folder/$name"
        cp "$sample" "$folder/$name/coordinator.yaml" ;;
    esac
done
for name in $names; do
    for other in $names; do
        if [ "$name" != "$other" ]; then
            cp "$folder/$other/tls/certificate.pem" "$folder/$name/peers/$other.pem"
        fi
    done
done
mkdir -p "$folder/coordinator/out"
# The containers run as user 10001; on your own machine give that user, and nobody else, the keys.
if [ "$(id -u)" = 0 ]; then chown -R 10001 "$folder"; fi
