"""Thresholds of one half and no penalties: what a test of one pass departs from."""

from __future__ import annotations

from clustering.stories.calibration import Calibration

PLAIN = Calibration(
    match=0.5,
    attach=0.5,
    link=0.5,
    merge=0.5,
    story_gap_hours=18,
    story_age_hours=36,
    centroid_members=10,
    neighbours=20,
    time_penalty=0,
    language_penalty=0,
    chain_slack=0.05,
    match_cohesion_penalty=0,
    merge_cohesion_penalty=0,
    merge_size_penalty=0,
    cohesion_prior=0.5,
    event_link=0.5,
    event_gap_hours=168,
    event_time_penalty=0,
)
