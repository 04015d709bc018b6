"""Every error that this package raises, drawn as one tree.

    StoriesError                 exit status 1
    ├── SourceError              a whole source cannot be read
    ├── DatabaseError
    │   ├── DatabaseUnreachable
    │   ├── EmbeddedServerError
    │   ├── PgvectorMissing
    │   ├── PgvectorTooOld
    │   └── ServerFull
    ├── ModelError               a model cannot be found, checked or loaded
    ├── SpaceError               a space cannot be fitted, filled, activated or dropped as things are
    ├── CalibrationError         thresholds are missing or out of range
    ├── NotFoundError            no story, article or run has that id
    ├── InvalidInput             exit status 2: an argument says something impossible
    ├── BuiltUpon                later runs rest on a run that is to be taken back
    ├── LeaseLost                a task is no longer this worker's
    ├── ExportError              stories cannot be written
    └── RunLocked                exit status 4

Input that is refused row by row is no error: it is a `records.Refusal`.
Each message is one line that says what happened and what to do.
"""


class StoriesError(Exception):
    """Base of all errors raised on purpose. `exit_status` is what the command line returns."""

    exit_status = 1


class SourceError(StoriesError):
    """A whole source (file, address) cannot be read."""


class DatabaseError(StoriesError):
    """The database cannot serve the engine."""


class DatabaseUnreachable(DatabaseError):
    """No server answers at the DSN, or it refuses the login."""


class EmbeddedServerError(DatabaseError):
    """The embedded server cannot be started or is not installed."""


class PgvectorMissing(DatabaseError):
    """The server has no pgvector extension to create."""


class PgvectorTooOld(DatabaseError):
    """The server's pgvector is older than 0.8.0 (iterative index scans are needed)."""


class ServerFull(DatabaseError):
    """The server's disk or memory is exhausted; the transaction was rolled back."""


class ModelError(StoriesError):
    """A model cannot be found, fails its digest, or cannot be loaded."""


class SpaceError(StoriesError):
    """A space cannot be fitted, filled, activated or dropped as things are."""


class CalibrationError(StoriesError):
    """A calibration file is missing a threshold or has one out of range."""


class NotFoundError(StoriesError):
    """No story, article or run has the id that was asked for."""


class InvalidInput(StoriesError):
    """An argument says something impossible."""

    exit_status = 2


class BuiltUpon(StoriesError):
    """Later runs decided on what a run that is to be taken back had decided."""


class LeaseLost(StoriesError):
    """A task is no longer this worker's: its lease ran out and another took over."""


class ExportError(StoriesError):
    """Stories cannot be written where they are wanted, or not in that format."""


class PlotError(StoriesError):
    """A chart cannot be drawn: its package is missing."""


class RunLocked(StoriesError):
    """Another run holds the database's advisory lock."""

    exit_status = 4
