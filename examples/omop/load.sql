-- Makes the clinic: tables, rows, and the views to anonymize. Run by psql in this folder.
\set ON_ERROR_STOP on
\ir schema.sql
\copy person FROM 'person.csv' (FORMAT csv, HEADER)
\copy visit_occurrence FROM 'visit_occurrence.csv' (FORMAT csv, HEADER)
\copy condition_occurrence FROM 'condition_occurrence.csv' (FORMAT csv, HEADER)
\copy concept FROM 'concept.csv' (FORMAT csv, HEADER)
\copy concept_ancestor FROM 'concept_ancestor.csv' (FORMAT csv, HEADER)
\ir views.sql
