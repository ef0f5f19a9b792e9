"""Pure algorithms on one table: taxonomies, cuts, scores, privacy models, single-holder loops."""
