"""A pytest plugin: in a folder with a student's homework.py, `pytest` has one test per exercise of its course.

A right answer passes, an exercise that is not started is skipped with the next step, and a wrong answer fails with the
text of the verdict. The package is loaded only when such a file is found; everywhere else the plugin does nothing.
"""

import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..support.counts import counted
from ..support.intercept import methods
from ..support.shadows import shadows, without_folder

FILE = "homework.py"
MARK = b"transformer-np homework"  # in the first lines of every file that `start` writes
_KEY = "homework"


def _is_ours(path):
    if path.name != FILE:
        return False
    try:
        with open(path, "rb") as file:
            return MARK in file.read(4000)
    except OSError:
        return False


def pytest_collect_file(file_path, parent):
    is_module = parent.session.isinitpath(file_path) or any(map(file_path.match, parent.config.getini("python_files")))
    if _is_ours(file_path) and not is_module:  # of a module pytest asks with the hook below
        return HomeworkFile.from_parent(parent, path=file_path)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path, parent):
    if _is_ours(module_path):
        return HomeworkFile.from_parent(parent, path=module_path)


def _start_as_daemon(thread, start=threading.Thread.start):
    """In place of Thread.start: pytest ends although a thread of the student's goes on."""
    thread.daemon = True
    start(thread)


@contextmanager
def _students_code(folder):
    """Inside the block, where a student's code runs, no module is imported from its folder by its name alone, as
    `python -m pytest` would, and no thread keeps pytest from ending."""
    with without_folder(folder), methods(threading.Thread, {"start": _start_as_daemon}):
        yield


class HomeworkFile(pytest.File):
    def collect(self):
        folder = self.path.parent
        hidden = list(shadows(folder))
        for shadow in hidden:
            self.warn(pytest.PytestCollectionWarning(shadow))
        try:
            with _students_code(folder):
                yield from self._items()
        except (ImportError, AttributeError) as error:
            if not hidden:
                raise
            raise self.CollectError("\n".join([*hidden, f"{type(error).__name__}: {error}"])) from None

    def _items(self):
        from ..homework.course import CourseError, beside, opened
        from ..homework.limit import TimeLimit
        from ..homework.path import own_folder
        from ..homework.submission import Checks, LoadError, load

        key = getattr(self.config.pluginmanager.getplugin("faulthandler"), "fault_handler_stderr_fd_key", None)
        stderr = self.config.stash.get(key, None)  # which pytest does not capture
        try:
            with opened(beside(self.path)) as course:
                self.folder, limit = own_folder(), TimeLimit(ends_process=True, stderr=stderr)
                os.environ.setdefault("MPLBACKEND", "agg")  # with a window plt.show() waits until somebody closes it
                submission = load(self.path, limit, strict=False)
                for crash in submission.crashes.values():
                    if not submission.answers:
                        raise LoadError(self.path, crash)
                    self.warn(pytest.PytestCollectionWarning(str(LoadError(self.path, crash))))
                for remark in submission.skipped:
                    self.warn(pytest.PytestCollectionWarning(remark))
                self.checks, names = Checks(submission, limit=limit), list(course.points)
        except (CourseError, LoadError, OSError, ValueError) as error:
            raise self.CollectError(str(error)) from None
        for name in names:
            yield HomeworkItem.from_parent(self, name=name)


class WrongAnswer(Exception):
    """A wrong answer; the text is that of its verdict."""


class HomeworkItem(pytest.Item):
    def runtest(self):
        from ..homework.path import exercises_in
        from ..homework.record import note
        from .homework_check import command_on, quoted

        checks, file = self.parent.checks, os.path.relpath(self.path)
        with exercises_in(self.parent.folder), _students_code(self.path.parent):
            standing = checks.of(self.name)
            note([standing.verdict], self.path.parent, where=FILE)
        state = "right" if standing.passed else "wrong" if standing.failed else "open"
        self.user_properties.append((_KEY, state))
        if standing.not_started:  # the reason is "not started." or "not started: it is imported from …"
            reason = standing.verdict.message.partition(": ")[2].replace("\n", " ")
            pytest.skip(f"{reason} Next: {command_on('hint', self.name, file)}")
        if standing.waits_for:
            pytest.skip(f"right as soon as your {standing.until}")
        if not standing.passed:
            again = f"transformer-np homework check {quoted(file)} {self.name} --seed {checks.seed}"
            raise WrongAnswer(f"{standing.verdict.message}\n\nThe same inputs again: {again}")

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, WrongAnswer):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        answer = self.parent.checks.submission.answers.get(self.name)
        code = getattr(answer, "__code__", None)
        return self.path, code.co_firstlineno - 1 if code else None, self.name


def pytest_terminal_summary(terminalreporter):
    calls = [one for group in terminalreporter.stats.values() for one in group if getattr(one, "when", "") == "call"]
    reports = [(report, state) for report in calls for key, state in report.user_properties if key == _KEY]
    if not reports:
        return
    states = [state for _, state in reports]
    said = f"{states.count('right')} of {counted(len(states), 'exercise')} right"
    if "wrong" in states:
        said += f", {states.count('wrong')} wrong"
    following = [report.nodeid for report, state in reports if state == "open"]
    if following and "wrong" not in states:
        from .homework_check import command_on

        file, _, name = following[0].rpartition("::")
        said += f". Next: {name} ({command_on('hint', name, os.path.relpath(terminalreporter.config.rootpath / file))})"
    terminalreporter.write_line(f"{Path(reports[0][0].nodeid.partition('::')[0])}: {said}")
