"""Load and check skills: SKILL.md, sop.yaml, cases. Refuses to decide which of them a page holds: that is the page."""
