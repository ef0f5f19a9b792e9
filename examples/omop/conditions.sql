-- One row a person, with all diseases in one cell: for sets.
CREATE VIEW anonymizable.conditions AS
SELECT person_id AS person, string_agg(DISTINCT disease, ';' ORDER BY disease) AS diseases, protected
FROM anonymizable.open_condition
JOIN anonymizable.protected_person USING (person_id)
GROUP BY person_id, protected;
