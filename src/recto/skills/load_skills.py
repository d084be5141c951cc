"""Loading of an agent's skills (S5), one per folder: `skills/<name>/SKILL.md`. Broken skills are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from recto.config.frontmatter import LONGEST
from recto.config.problem import FileProblem
from recto.skills.bundled import MOST_FILES, bundled_files
from recto.skills.cases import CASES, is_case, read_cases
from recto.skills.localized import VARIANT, FileLanguage, LocalizedFile, read_localized
from recto.skills.safe_path import UnreadableFile, read_within
from recto.skills.skill import Skill
from recto.skills.skill_file import Needs, skill_of
from recto.skills.sop import Sop
from recto.skills.sop_file import read_sop

FILE, SOP_FILE = "SKILL.md", "sop.yaml"
NO_FILE = f"there is no {FILE} in it. Write one, or begin its name with _ to leave it out; skills are one level deep."
MORE_FILES = f"it has more than {MOST_FILES} files; those after the first {MOST_FILES} are not listed to the model."


@dataclass(frozen=True, kw_only=True)
class LoadedSkills:
    """Valid skills by name, in the order of their folders, and the problems of broken ones by folder."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    broken: Mapping[str, tuple[FileProblem, ...]] = field(default_factory=dict[str, tuple[FileProblem, ...]])
    warnings: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Read:
    """Content of a skill's folder: a skill, or problems."""

    skill: Skill | None = None
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def load_skills(folder: Path, locale: str = "zh") -> LoadedSkills:
    """Load the skills of a folder in a language. It reports errors as problems; a missing folder has no skills."""
    try:
        folders = [
            folder / name
            for name in sorted(path.name for path in folder.iterdir() if not path.name.startswith((".", "_")))
            if _is_folder(folder / name)
        ]
    except FileNotFoundError:
        return LoadedSkills()
    except OSError as error:
        return _no_folder(folder, error)
    skills: dict[str, Skill] = {}
    broken: dict[str, tuple[FileProblem, ...]] = {}
    warnings: list[FileProblem] = []
    for path in folders:
        read = _load_skill(path, locale)
        if read.skill is None:
            broken[path.name] = read.problems
        elif read.skill.name in skills:
            other = skills[read.skill.name].folder.name
            text = f"another skill is named {read.skill.name} already, in {other}. Rename one of them."
            broken[path.name] = (FileProblem(file=path / FILE, line=None, text=text),)
        else:
            skills[read.skill.name] = read.skill
            warnings.extend(read.warnings)
    return LoadedSkills(skills=skills, broken=broken, warnings=tuple(warnings))


def _is_folder(path: Path) -> bool:
    """Return True also for unreadable paths, which are then reported as broken."""
    try:
        return path.is_dir()
    except OSError:
        return True


def _no_folder(folder: Path, error: OSError) -> LoadedSkills:
    text = f"skills cannot be read from it ({error.strerror}). Make it a folder of skills, or remove it."
    return LoadedSkills(broken={folder.name: (FileProblem(file=folder, line=None, text=text),)})


def _load_skill(folder: Path, locale: str) -> _Read:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        text = f"it cannot be read ({error.strerror}). Fix or remove it."
        return _Read(problems=(FileProblem(file=folder, line=None, text=text),))
    if FILE not in names:
        return _Read(problems=(FileProblem(file=folder, line=None, text=NO_FILE),))
    try:
        document = read_localized(folder, folder / FILE, FileLanguage(locale=locale, names=names), strict=False)
    except UnreadableFile as error:
        return _Read(problems=(FileProblem(file=folder / FILE, line=None, text=str(error)),))
    return _complete(folder, names, locale, document)


def _complete(folder: Path, names: list[str], locale: str, document: LocalizedFile) -> _Read:
    """Add the procedure, cases and files to a skill."""
    read = skill_of(document, folder)
    sop, sop_problems, sop_warnings = _load_sop(folder, names, locale, read.needs)
    problems = (*read.problems, *sop_problems)
    if problems:
        return _Read(problems=problems)
    case_names = _case_names(folder) if CASES in names else []
    cases, case_warnings = read_cases(folder, FileLanguage(locale=locale, names=case_names))
    files = bundled_files(folder, _is_read)
    warnings = [*read.warnings, *sop_warnings, *case_warnings]
    if len(files) > MOST_FILES:
        warnings.append(FileProblem(file=folder, line=None, text=MORE_FILES))
    return _Read(
        skill=replace(read.skill, sop=sop, cases=cases, files=files[:MOST_FILES]),
        warnings=tuple(warnings),
    )


def _load_sop(
    folder: Path, names: list[str], locale: str, needs: Needs
) -> tuple[Sop | None, tuple[FileProblem, ...], tuple[FileProblem, ...]]:
    name = FileLanguage(locale=locale, names=names).variant_of(SOP_FILE) or SOP_FILE
    if name not in names:
        return None, (), ()
    document = LocalizedFile(file=folder / name)
    try:
        sop, faults, warnings = read_sop(read_within(folder, document.file, LONGEST), needs)
    except UnreadableFile as error:
        return None, (FileProblem(file=document.file, line=None, text=str(error)),), ()
    return sop, document.problems(faults), document.problems(warnings)


def _case_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in (folder / CASES).iterdir()]
    except OSError:
        return []


def _is_read(names: tuple[str, ...]) -> bool:
    """Return True for a skill's SKILL.md, procedure and cases, in any language."""
    match = VARIANT.fullmatch(names[-1])
    name = f"{match['stem']}{match['ending']}" if match else names[-1]
    match names[:-1]:
        case ():
            return name in (FILE, SOP_FILE)
        case (folder,):
            return folder == CASES and is_case(name)
        case _:
            return False
