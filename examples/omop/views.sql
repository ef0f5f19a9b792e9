-- Makes the views to anonymize, over the tables of a schema: omop, or the schema that `psql -v cdm=NAME` names.
\set ON_ERROR_STOP on
\if :{?cdm}
\else
\set cdm omop
\endif
CREATE SCHEMA anonymizable;
SET search_path = :"cdm";
\ir protected.sql
\ir persons.sql
\ir visits.sql
\ir conditions.sql
