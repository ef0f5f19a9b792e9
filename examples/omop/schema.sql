-- Tables of the OMOP Common Data Model 5.4, with the columns that the views of this example read.
CREATE SCHEMA omop;
SET search_path = omop;

CREATE TABLE person (
    person_id integer PRIMARY KEY,
    gender_concept_id integer NOT NULL,
    year_of_birth integer NOT NULL,
    race_concept_id integer NOT NULL
);
CREATE TABLE visit_occurrence (
    visit_occurrence_id integer PRIMARY KEY,
    person_id integer NOT NULL,
    visit_concept_id integer NOT NULL,
    visit_start_date date NOT NULL
);
CREATE TABLE condition_occurrence (
    condition_occurrence_id integer PRIMARY KEY,
    person_id integer NOT NULL,
    condition_concept_id integer NOT NULL,
    condition_start_date date NOT NULL
);
CREATE TABLE concept (
    concept_id integer PRIMARY KEY,
    concept_name varchar(255) NOT NULL,
    domain_id varchar(20) NOT NULL,
    vocabulary_id varchar(20) NOT NULL,
    concept_code varchar(50) NOT NULL
);
CREATE TABLE concept_ancestor (
    ancestor_concept_id integer NOT NULL,
    descendant_concept_id integer NOT NULL,
    min_levels_of_separation integer NOT NULL,
    max_levels_of_separation integer NOT NULL
);
