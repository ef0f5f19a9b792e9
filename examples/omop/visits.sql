-- One row a visit, for sequences.
CREATE VIEW anonymizable.visits AS
SELECT visit_occurrence.person_id AS person, kind.concept_name AS visit, visit_occurrence.visit_start_date AS day,
    protected_person.protected
FROM visit_occurrence
JOIN concept AS kind ON kind.concept_id = visit_occurrence.visit_concept_id
JOIN anonymizable.protected_person USING (person_id);
