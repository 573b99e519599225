"""Validation of every level of every setting on every server that uses it, before anything is loaded."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from pgversus.builds.model import Build
from pgversus.errors import StudyError, StudyFileError
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import Target, uri_target
from pgversus.postgres.settings_check import SettingAnswer, accepts_sessions, ask_running_server
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Skipped, Study
from pgversus.text.redaction import holds_secret, value_without_secrets

Ask = Callable[[ServerName, Setting], SettingAnswer | None]
"""Asks a server about a setting; returns None if the server is unavailable."""
TargetOf = Callable[[str, Sequence[Setting]], Target]
"""Maps the URI of a running server and settings to connection parameters."""


def ask_of(
    builds: Mapping[ServerName, Build | None],
    ask_program: Callable[[Build, Setting], SettingAnswer],
    target_of: TargetOf | None = uri_target,
) -> Ask:
    """Return a function that asks the program of a build, or a running server; it returns None if unavailable.

    target_of: None if running servers are not to be queried.
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
    """Return the study without unavailable settings if it allows that; else raise StudyFileError with all refusals.

    If a server lacks a setting that another one has, its treatments are skipped if the setting is a factor; otherwise
    the setting is omitted on that server. A setting that no server has is refused, because its name is wrong, unless it
    comes from the user's own server.
    """
    answers = _answers(study, ask)
    problems = list(_problems(study, answers))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        count = f"{len(problems)} settings were rejected"
        raise StudyFileError(count, slug="study-settings", where=study.name, problems=tuple(problems))
    return _without_missing(study, answers) if study.skips_missing_settings else study


_Answers = Mapping[tuple[ServerName, Setting], SettingAnswer | None]


def _answers(study: Study, ask: Ask) -> _Answers:
    """Return the answer of each server for each of its settings, each asked once."""
    arms = (arm for context in study.contexts for arm in context.comparison.arms)
    questions = list(dict.fromkeys((arm.server, setting) for arm in arms for setting in arm.settings))
    # Each question waits for a program or a session: hundreds of levels in sequence would take too long.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return dict(zip(questions, pool.map(lambda question: ask(*question), questions), strict=True))


def _problems(study: Study, answers: _Answers) -> Iterator[StudyError]:
    refused: dict[tuple[str, str, str], _Refusal] = {}
    had = set()
    for context in study.contexts:
        for arm in context.comparison.arms:
            for setting in arm.settings:
                found = answers[arm.server, setting]
                if found is None or not found.is_unknown:
                    # A server that is unavailable may have it.
                    had.add(setting.name)
                if found is not None and found.value is None:
                    # For an unknown name the values do not matter.
                    key = setting.name, "" if found.is_unknown else setting.value, found.message
                    one = refused.setdefault(key, _Refusal(name=setting.name, answer=found))
                    one.add(setting.value, _server_text(arm.server))
    for one in refused.values():
        others_have_it = one.answer.is_unknown and (one.name in had or one.name in study.carried_settings)
        if not (others_have_it and study.skips_missing_settings):
            yield one.error(others_have_it=others_have_it)
    yield from _same_levels(study, answers)


def _server_text(server: ServerName) -> str:
    """Return the name of a server, which several arms may share, without a password."""
    return label_of_running(server) if isinstance(server, RunningServer) else str(server)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """Refusals by servers with the same message; values and labels once each, in order."""

    name: str
    answer: SettingAnswer
    values: dict[str, None] = field(default_factory=dict)
    labels: dict[str, None] = field(default_factory=dict)

    def add(self, value: str, label: str) -> None:
        self.values[value] = None
        self.labels[label] = None

    def error(self, *, others_have_it: bool) -> StudyError:
        if others_have_it:
            to_do = 'to skip settings that a server lacks, set if_missing = "skip" in the study file'
        elif self.answer.nearest is not None:
            to_do = f"did you mean {self.answer.nearest}?"
        else:
            to_do = "correct the name or the value; see the server's message above"
        return StudyError(
            "a server rejected a setting",
            slug="study-setting-refused",
            where=f"{self.name} = {', '.join(self.values)}, on {', '.join(self.labels)}",
            found=self.answer.message,
            expected="a name and a value that every server of the study accepts",
            to_do=to_do,
        )


def _same_levels(study: Study, answers: _Answers) -> Iterator[StudyError]:
    """Yield an error for levels of the compared setting that are identical to the server."""
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
                ours, theirs = answers[arm.server, base], answers[arm.server, level]
                same = ours is not None and theirs is not None and ours.value == theirs.value is not None
                # A program is not told the value of a secret.
                same = same and not any(holds_secret(name, one.value) for one in (base, level))
                # In a product of several settings, one level may stay while another one changes.
                alone = [s for s in arm.settings if s not in comparison.baseline.settings] == [level]
                if same and alone and (name, base.value, level.value) not in seen:
                    seen.add((name, base.value, level.value))
                    yield _same(name, base.value, level.value)


def _without_missing(study: Study, answers: _Answers) -> Study:
    contexts: list[Context] = []
    skipped: list[Skipped] = []
    for context in study.contexts:
        fixed = {factor for factor, _ in context.levels} | set(context.comparison.factors)
        arms: list[Arm] = []
        for arm in context.comparison.arms:
            lacking = [setting for setting in arm.settings if _lacks(answers, arm, setting)]
            if any(setting.name in fixed for setting in lacking):
                label = f"{context.label} {arm.label}".strip()
                skipped.append(Skipped(label=label, reason=f"unknown setting {lacking[0].name}"))
            else:
                shared = (f"{setting.name} on {_server_text(arm.server)}" for setting in lacking)
                skipped += [Skipped(label=label, reason="unknown setting") for label in shared]
                kept = tuple(setting for setting in arm.settings if setting not in lacking)
                arms.append(replace(arm, index=len(arms), settings=kept))
        if _is_comparison(context, arms):
            comparison = replace(context.comparison, arms=tuple(arms))
            # Numbered without gaps: stored contexts are checked for that when they are read.
            contexts.append(replace(context, number=len(contexts) + 1, comparison=comparison))
    if not contexts:
        raise StudyError(
            "nothing is left to compare",
            slug="study-nothing-left",
            where=study.name,
            found="; ".join(f"{one.label}: {one.reason}" for one in skipped[:3]),
            expected="a comparison whose baseline and one contender have the setting",
            to_do="remove the setting, or compare servers that have it",
        )
    # Each once: the arms of many contexts share their servers.
    return replace(study, contexts=tuple(contexts), skipped=(*study.skipped, *dict.fromkeys(skipped)))


def _lacks(answers: _Answers, arm: Arm, setting: Setting) -> bool:
    found = answers[arm.server, setting]
    return found is not None and found.is_unknown


def _is_comparison(context: Context, arms: list[Arm]) -> bool:
    return len(arms) > 1 and arms[BASELINE].label == context.comparison.baseline.label


def _same(name: str, *levels: str) -> StudyError:
    return StudyError(
        "the server treats two levels of a setting as equal",
        slug="study-same-levels",
        where=name,
        found=" and ".join(value_without_secrets(name, level) for level in levels),
        expected="levels that differ",
        to_do="remove one of them; for an A/A comparison, specify the server twice",
    )
