#!/bin/sh
# Make the folders that compose.yaml mounts: an identity and a configuration each, everybody's certificate installed.
# In real life each party does this at home and sends only its certificate; here one machine plays all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-"$here/compose"}
names="hospital-a hospital-b hospital-c"
for name in $names; do
    party init --name "$name" --dir "$folder/$name" --listen 0.0.0.0:7400 --data /data/table.csv
    # One machine plays all owners: the policy alone decides.
    sed 's/^policy:$/&\n  approval: automatic/' "$here/three-machines/$name.yaml" > "$folder/$name/party.yaml"
done
# The table of hospital-c is in a database; the connection string is in a file of its own.
new_password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
held='{name: transfusion, postgres: {dsn_file: dsn, table: patients}}'
sed -i "s|^  csv: .*|  $held|" "$folder/hospital-c/party.yaml"
mkdir -p "$folder/hospital-c-database"
(
    umask 077
    new_password > "$folder/hospital-c-database/superuser"
    new_password > "$folder/hospital-c-database/reader"
    echo "host=hospital-c-database dbname=hospital user=reader password=$(cat "$folder/hospital-c-database/reader")" \
        > "$folder/hospital-c/dsn"
)
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
# The containers run as user 10001, and PostgreSQL's as user 999; on your own machine give these users, and nobody else,
# the keys and passwords.
if [ "$(id -u)" = 0 ]; then
    chown -R 10001 "$folder"
    chown -R 999 "$folder/hospital-c-database"
fi
