-- The tables that are anonymized, made of an OMOP database (CDM 5.4) in the schema `omop`. Views: who may read them
-- needs no right to read the tables behind them.

-- One row for every person: what is known of them, their diagnoses as a set, and which of these they have most often.
CREATE OR REPLACE VIEW omop.patients AS
WITH codes AS (
    SELECT person_id, condition_source_value AS code, count(*) AS n
    FROM omop.condition_occurrence
    GROUP BY 1, 2
)
SELECT
    p.person_id,
    CASE p.gender_concept_id WHEN 8507 THEN 'male' WHEN 8532 THEN 'female' END AS gender,
    2025 - p.year_of_birth AS age,
    CASE p.race_concept_id WHEN 8515 THEN 'Asian' WHEN 8516 THEN 'Black' WHEN 8527 THEN 'White' END AS race,
    l.zip,
    (SELECT string_agg(c.code, ';' ORDER BY c.code) FROM codes AS c
     WHERE c.person_id = p.person_id AND c.code <> 'B20') AS conditions,
    (SELECT c.code FROM codes AS c WHERE c.person_id = p.person_id ORDER BY c.n DESC, c.code LIMIT 1) AS condition,
    CASE WHEN EXISTS (SELECT FROM codes AS c WHERE c.person_id = p.person_id AND c.code = 'B20')
         THEN 'HIV' ELSE 'no' END AS hiv,
    CASE WHEN d.person_id IS NULL THEN 'no' ELSE 'yes' END AS died
FROM omop.person AS p
LEFT JOIN omop.location AS l USING (location_id)
LEFT JOIN omop.death AS d USING (person_id);

-- One row for every visit of a person: where, and when it began.
CREATE OR REPLACE VIEW omop.visits AS
SELECT
    v.person_id,
    CASE v.visit_concept_id WHEN 9201 THEN 'inpatient' WHEN 9202 THEN 'outpatient' WHEN 9203 THEN 'emergency' END
        AS visit,
    v.visit_start_datetime AS started,
    p.hiv
FROM omop.visit_occurrence AS v
JOIN omop.patients AS p USING (person_id);
