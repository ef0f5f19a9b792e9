#!/bin/sh
# Make the folders that compose-relay.yaml mounts: as compose-setup.sh, with a relay that everybody knows, and with
# hospitals that listen on their own machine alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-"$here/compose-relay"}
names="hospital-a hospital-b hospital-c coordinator"
"$here/compose-setup.sh" "$folder"
coordinator init --name relay --dir "$folder/relay"
for name in $names; do
    coordinator peers add "$name" "$folder/$name/tls/certificate.pem" --config "$folder/relay/coordinator.yaml"
    cp "$folder/relay/tls/certificate.pem" "$folder/$name/peers/relay.pem"
    kind=party
    [ "$name" != coordinator ] || kind=coordinator
    {
        # One machine plays all owners: the policy alone decides.
        sed -e 's/^policy:$/&\n  approval: automatic/' \
            -e 's/^listen: .*/listen: "127.0.0.1:7400"           # nobody but the daemon itself, for callers at the relay/' \
            -e 's/address: "[^"]*"/address: relay/' "$here/three-machines/$name.yaml"
        echo 'relay: {address: "relay:7443", certificate: peers/relay.pem}'
    } > "$folder/$name/$kind.yaml"
done
rm -rf "$folder/hospital-c-database" "$folder/hospital-c/dsn"  # here hospital-c has a CSV, too
if [ "$(id -u)" = 0 ]; then
    chown -R 10001 "$folder"
fi
