"""PostgreSQL: the embedded server, sessions, named statements, migrations."""
