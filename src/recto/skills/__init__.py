"""Skills: `SKILL.md`, `sop.yaml` and cases, loaded into values."""
