"""Load and check skills: SKILL.md, sop.yaml, cases. Refuses to decide which of them a page holds: that is the page.

- `bundled`: files that a skill brings along, read on demand
- `cases`: cases (S8)
- `directory`: the skill directory (S3)
- `expert`: the expert a skill makes of an agent (S7-S9)
- `known`: what is known of a user while a skill is at work
- `lenient_yaml`: YAML as public skills have it
- `load_skills`: the skills of an agent (S5)
- `localized`: what people wrote in a file and in its variant for a language, as one text
- `safe_path`: files of a skill's folder
- `skill`: A skill as a value
- `skill_file`: `SKILL.md` (S5)
- `skill_table`: the settings of `SKILL.md` that are ours
- `sop`: standard procedures (S7)
- `sop_file`: `sop.yaml` (S7)
"""
