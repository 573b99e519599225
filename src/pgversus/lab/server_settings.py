"""Every level of every setting put to every server that is to have it, before anything is loaded."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from pgversus.builds.model import Build
from pgversus.errors import StudyError, StudyFileError
from pgversus.postgres.session import Target, uri_target
from pgversus.postgres.settings_check import SettingAnswer, accepts_sessions, ask_running_server
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Skipped, Study
from pgversus.text.redaction import value_without_secrets

Ask = Callable[[ServerName, Setting], SettingAnswer | None]
"""What a server says of a setting; None where it cannot be asked."""
TargetOf = Callable[[str, Sequence[Setting]], Target]
"""From the URI of a running server and settings to how it is connected to."""


def ask_of(
    builds: Mapping[ServerName, Build | None],
    ask_program: Callable[[Build, Setting], SettingAnswer],
    target_of: TargetOf | None = uri_target,
) -> Ask:
    """Asks the program of a build, or a session where the server runs already; nobody where neither is to be had.

    target_of: None where running servers are not asked.
    """
    is_there = cache(lambda uri: target_of is not None and accepts_sessions(target_of(uri, ())))

    def ask(server: ServerName, setting: Setting) -> SettingAnswer | None:
        if isinstance(server, RunningServer):
            if target_of is None or not is_there(server.uri):
                return None
            return ask_running_server(target_of(server.uri, (setting,)), setting)
        build = builds[server]
        return ask_program(build, setting) if build is not None else None

    return ask


def with_possible_settings(study: Study, ask: Ask) -> Study:
    """The study without what its servers cannot have, where it allows that; StudyFileError with all refusals else.

    A setting that a server lacks and another one has: as a level of a factor its treatment is left out, as a shared one
    it is left out of that server's settings. One that no server has is refused: its name is wrong.
    """
    answers = _answers(study, ask)

    def answer(arm: Arm, setting: Setting) -> SettingAnswer | None:
        return answers[arm.server, setting]

    problems = list(_problems(study, answer))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        count = f"{len(problems)} settings cannot be had"
        raise StudyFileError(count, slug="study-settings", where=study.name, problems=tuple(problems))
    return _without_missing(study, answer) if study.skips_missing_settings else study


_Answer = Callable[[Arm, Setting], SettingAnswer | None]


def _answers(study: Study, ask: Ask) -> Mapping[tuple[ServerName, Setting], SettingAnswer | None]:
    """What each server says of each of its settings, asked once."""
    arms = (arm for context in study.contexts for arm in context.comparison.arms)
    questions = list(dict.fromkeys((arm.server, setting) for arm in arms for setting in arm.settings))
    # Each question waits for a program or a session: a study with hundreds of levels would wait for them in turn.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return dict(zip(questions, pool.map(lambda question: ask(*question), questions), strict=True))


def _problems(study: Study, answer: _Answer) -> Iterator[StudyError]:
    refused: dict[tuple[str, str, str], _Refusal] = {}
    had = set()
    for context in study.contexts:
        for arm in context.comparison.arms:
            for setting in arm.settings:
                found = answer(arm, setting)
                if found is None or not found.is_unknown:
                    # A server that cannot be asked may have it.
                    had.add(setting.name)
                if found is not None and found.value is None:
                    # Of an unknown name no value is worth a word of its own.
                    key = setting.name, "" if found.is_unknown else setting.value, found.words
                    refused.setdefault(key, _Refusal(name=setting.name, answer=found)).add(setting.value, arm.label)
    for one in refused.values():
        others_have_it = one.answer.is_unknown and one.name in had
        if not (others_have_it and study.skips_missing_settings):
            yield one.error(others_have_it=others_have_it)
    yield from _same_levels(study, answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """What servers have refused in the same words; values and labels once each, in order."""

    name: str
    answer: SettingAnswer
    values: dict[str, None] = field(default_factory=dict)
    labels: dict[str, None] = field(default_factory=dict)

    def add(self, value: str, label: str) -> None:
        self.values[value] = None
        self.labels[label] = None

    def error(self, *, others_have_it: bool) -> StudyError:
        if others_have_it:
            to_do = 'a study file may say if_missing = "skip" for settings that one server lacks'
        elif self.answer.nearest is not None:
            to_do = f"{self.answer.nearest}, if that is meant"
        else:
            to_do = "these are the server's own words; mend the name or the value"
        return StudyError(
            "a server refuses a setting",
            slug="study-setting-refused",
            where=f"{self.name} = {', '.join(self.values)}, on {', '.join(self.labels)}",
            found=self.answer.words,
            expected="a name and a value that every server of the study takes",
            to_do=to_do,
        )


def _same_levels(study: Study, answer: _Answer) -> Iterator[StudyError]:
    """Levels of the compared setting that are one and the same to the server."""
    seen = set()
    for context in study.contexts:
        comparison = context.comparison
        for name in comparison.factors:
            base = next((s for s in comparison.baseline.settings if s.name == name), None)
            for arm in comparison.contenders:
                level = next((s for s in arm.settings if s.name == name), None)
                if (
                    base is None
                    or level is None
                    or level.value == base.value
                    or arm.server != comparison.baseline.server
                ):
                    continue
                ours, theirs = answer(comparison.baseline, base), answer(arm, level)
                same = ours is not None and theirs is not None and ours.value == theirs.value is not None
                # In a product of several settings a level may stay while another one changes.
                alone = [s for s in arm.settings if s not in comparison.baseline.settings] == [level]
                if same and alone and (name, base.value, level.value) not in seen:
                    seen.add((name, base.value, level.value))
                    yield _same(name, base.value, level.value)


def _without_missing(study: Study, answer: _Answer) -> Study:
    contexts: list[Context] = []
    skipped: list[Skipped] = []
    for context in study.contexts:
        fixed = {factor for factor, _ in context.levels} | set(context.comparison.factors)
        arms: list[Arm] = []
        for arm in context.comparison.arms:
            lacking = [setting for setting in arm.settings if _lacks(answer, arm, setting)]
            if any(setting.name in fixed for setting in lacking):
                label = f"{context.label} {arm.label}".strip()
                skipped.append(Skipped(label=label, reason=f"no {lacking[0].name} in it"))
            else:
                kept = tuple(setting for setting in arm.settings if setting not in lacking)
                arms.append(replace(arm, index=len(arms), settings=kept))
        if _is_comparison(context, arms):
            contexts.append(replace(context, comparison=replace(context.comparison, arms=tuple(arms))))
    if not contexts:
        raise StudyError(
            "nothing is left to compare",
            slug="study-nothing-left",
            where=study.name,
            found="; ".join(f"{one.label}: {one.reason}" for one in skipped[:3]),
            expected="a comparison whose baseline and one contender have the setting",
            to_do="take the setting out, or compare servers that have it",
        )
    return replace(study, contexts=tuple(contexts), skipped=tuple(skipped))


def _lacks(answer: _Answer, arm: Arm, setting: Setting) -> bool:
    found = answer(arm, setting)
    return found is not None and found.is_unknown


def _is_comparison(context: Context, arms: list[Arm]) -> bool:
    return len(arms) > 1 and arms[BASELINE].label == context.comparison.baseline.label


def _same(name: str, *levels: str) -> StudyError:
    return StudyError(
        "two levels of a setting are the same to the server",
        slug="study-same-levels",
        where=name,
        found=" and ".join(value_without_secrets(name, level) for level in levels),
        expected="levels that differ",
        to_do="leave one of them out; for an A/A comparison name the server twice",
    )
