-- Holds the number of a migration that comes with another branch.
SELECT 1;
