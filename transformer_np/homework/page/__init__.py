"""The homework as a web page: Python runs in the browser (Pyodide), and nothing is installed.

`build.py` writes the folder; `files/` holds the page's own files; `tab.py` and `split.py` run in the browser.
"""
