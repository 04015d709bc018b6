-- Runs: one row for each call that changed something.

-- start_run: register a run when its first change is due
INSERT INTO run (command, started_at, settings)
VALUES (%(command)s, %(started_at)s, %(settings)s)
RETURNING id;

-- fail_dead_runs: runs that were killed; only the holder of the run lock may say so
UPDATE run SET outcome = 'failed', finished_at = now() WHERE outcome = 'running';

-- finish_run: close a run with what it did
UPDATE run SET finished_at = now(), counts = %(counts)s, seconds = %(seconds)s, outcome = %(outcome)s
WHERE id = %(run_id)s;
