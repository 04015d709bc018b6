"""Tasks for what comes after the stories: leases, results, scores, and word of changes."""
