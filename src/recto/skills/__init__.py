"""Skills of an agent: `SKILL.md`, `sop.yaml` and cases as values, and the expert that a skill makes of an agent.

Refuses to decide which of them a page holds: that is the page.

- `safe_path`: files of a skill's folder, none of which may lead out of it
- `lenient_yaml`: YAML as public skills have it
- `localized`: a file with its variant for a language over it
- `known`: what is known of a user while a skill is at work
- `sop`: standard procedures, and the step that is due (S7)
- `cases`: worked examples, read and found (S8)
- `skill`: a skill as a value
- `skill_file`: `SKILL.md` (S5)
- `sop_file`: `sop.yaml` (S7)
- `bundled`: files that a skill brings along, read on demand
- `load_skills`: all skills of an agent's folder (S5)
- `triggers`: the skill that a user's words speak of
- `directory`: the tool `use_skill` with the directory of skills (S3)
- `expert`: the prompt, the next step and the cases of the skill that is active (S7-S9)
"""
