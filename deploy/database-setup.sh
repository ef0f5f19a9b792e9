#!/bin/sh
# What the PostgreSQL image of compose.postgres.yaml runs once, when its folder is empty: the example's table, and a user
# who may read it and nothing else. Columns have the names of the CSV's header.
set -eu
table=/data/table.csv
columns=$(head -n 1 "$table" | tr -d '\r' | sed 's/\([^,]*\)/"\1" text/g')
password=$(cat "/run/secrets/reader")
psql --set ON_ERROR_STOP=1 --set password="$password" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<SQL
CREATE TABLE public.patients ($columns);
\\copy public.patients FROM '$table' (FORMAT csv, HEADER)
CREATE ROLE reader LOGIN PASSWORD :'password';
GRANT SELECT ON public.patients TO reader;
SQL
