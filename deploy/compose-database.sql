-- Table and reader of the database of hospital-c in compose.yaml; the image of PostgreSQL runs this file once.
\set ON_ERROR_STOP on
\set password `cat /etc/database/reader`
CREATE TABLE patients (
    patient text, job text, sex text, age integer, weight numeric, haemoglobin numeric, district text,
    transfused text, surgery text
);
\copy patients FROM '/data/table.csv' (FORMAT csv, HEADER)
-- The role can read this table, and nothing else; one connection for the run, and one for `party check`.
CREATE ROLE reader LOGIN PASSWORD :'password' CONNECTION LIMIT 2;
GRANT SELECT ON patients TO reader;
