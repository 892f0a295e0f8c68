"""The feedback for one student as a page of HTML, which a browser or a learning platform shows."""

import io
import re
from html import escape

from ..support.pyodide import write_archive
from .report import explained, rows_of_report, summary

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #222;
  overflow-wrap: break-word; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; }
td:last-child { overflow-wrap: anywhere; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; white-space: pre-wrap; font-size: .8rem; }
.passed { color: #0a6b3d; } .below, footer { color: #666; font-size: .9rem; }
@media (max-width: 40rem) { table { display: block; overflow-x: auto; } }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #ddd; } pre { background: #242424; } th, td { border-color: #444; }
  .passed { color: #4cc38a; } .below, footer { color: #aaa; }
}
"""


def page(grade, rubric, run):
    """The report on one student. run: a sentence on the settings of the grading"""
    title = " ".join(f"{grade.student}{f', {grade.name}' if grade.name else ''}".split())
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(rubric.title)}</p>" if rubric.title else ""]
    parts.append(f"<p>{escape(summary(grade, rubric))}</p>")
    if grade.remarks:
        parts.append(f"<ul>{''.join(f'<li>{escape(remark)}</li>' for remark in grade.remarks)}</ul>")
    parts.append("<table><tr><th>exercise</th><th>points</th><th>outcome</th><th>mistake</th><th>graded</th></tr>")
    for row in rows_of_report(grade, rubric):
        cells = "".join(f"<td>{escape(text)}</td>" for text in row)
        parts.append(f'<tr class="{"passed" if row[2] == "passed" else ""}">{cells}</tr>')
    parts.append("</table>")
    for name, text, below in explained(grade, rubric):
        parts.append(f"<h2>{escape(name)}</h2><pre>{escape(text)}</pre>")
        parts.append(f'<p class="below">{escape(below)}</p>' if below else "")
    body = "\n".join(filter(None, parts))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n<footer>{escape(run)}</footer>\n</body>\n</html>\n"
    )


MOODLE_ZIP = "moodle_feedback.zip"
_OF_MOODLE = re.compile(r"[^_]*_\d+_assignsubmission_[a-z]+_?")  # Ada Lovelace_4711_assignsubmission_file


def moodle_zip(pages):
    """The zip that Moodle reads as "multiple feedback files", or None if nothing comes from Moodle.

    pages: {name of a file or folder among the submissions: HTML}; Moodle knows the student by the number in the name of
    the folder that it wrote itself
    """
    names, content = sorted(filter(_OF_MOODLE.fullmatch, pages)), io.BytesIO()
    write_archive(content, {f"{name}/feedback.html": pages[name].encode("utf-8", "replace") for name in names})
    return content.getvalue() if names else None
