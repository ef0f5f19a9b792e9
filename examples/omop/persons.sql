-- One row a person. Cells are empty for people without a visit, or without a disease that is not protected.
CREATE VIEW anonymizable.persons AS
SELECT person.person_id AS person, sex.concept_name AS sex, person.year_of_birth AS born,
    race.concept_name AS race, visits.first_visit, visits.visits, diseases.disease, protected_person.protected
FROM person
LEFT JOIN concept AS sex ON sex.concept_id = person.gender_concept_id
LEFT JOIN concept AS race ON race.concept_id = person.race_concept_id
JOIN anonymizable.protected_person USING (person_id)
LEFT JOIN (
    SELECT person_id, count(*) AS visits, min(visit_start_date) AS first_visit
    FROM visit_occurrence GROUP BY person_id
) AS visits USING (person_id)
LEFT JOIN (
    SELECT DISTINCT ON (person_id) person_id, disease
    FROM anonymizable.open_condition ORDER BY person_id, condition_start_date, disease
) AS diseases USING (person_id);
