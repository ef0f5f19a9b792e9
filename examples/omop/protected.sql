-- Diseases that a release must not give away: the descendants of three concepts. Change the list for your own data.
CREATE VIEW anonymizable.protected_group AS
SELECT * FROM unnest(ARRAY['Chronic viral infection', 'Substance use disorder', 'Mental disorder'])
    WITH ORDINALITY AS listed (protected, place);

CREATE VIEW anonymizable.protected_disease AS
SELECT concept_ancestor.descendant_concept_id AS condition_concept_id, listed.protected, listed.place
FROM anonymizable.protected_group AS listed
JOIN concept ON concept.concept_name = listed.protected
JOIN concept_ancestor ON concept_ancestor.ancestor_concept_id = concept.concept_id;

-- A name without a disease would protect nobody.
DO $$
DECLARE
    unknown text;
BEGIN
    SELECT string_agg(quote_literal(protected), ', ' ORDER BY place) INTO unknown
    FROM anonymizable.protected_group
    WHERE protected NOT IN (SELECT protected FROM anonymizable.protected_disease);
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'protected.sql lists %, which is no concept with descendants: correct the list', unknown;
    END IF;
END $$;

-- The group of each person; of several groups the first in the list.
CREATE VIEW anonymizable.protected_person AS
SELECT person.person_id,
    coalesce((array_agg(disease.protected ORDER BY disease.place NULLS LAST))[1], 'none') AS protected
FROM person
LEFT JOIN condition_occurrence USING (person_id)
LEFT JOIN anonymizable.protected_disease AS disease USING (condition_concept_id)
GROUP BY person.person_id;

-- All other diseases, by ICD-10 code.
CREATE VIEW anonymizable.open_condition AS
SELECT condition_occurrence.person_id, condition_occurrence.condition_start_date, concept.concept_code AS disease
FROM condition_occurrence
JOIN concept ON concept.concept_id = condition_occurrence.condition_concept_id
WHERE concept.vocabulary_id = 'ICD10' AND condition_occurrence.condition_concept_id NOT IN
    (SELECT condition_concept_id FROM anonymizable.protected_disease);
