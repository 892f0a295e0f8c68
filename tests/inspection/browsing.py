"""What a test does with a page in the browser."""

import numpy as np
from shared import resize

TEXTS = [  # that are cut and joined in the page as in Python
    "Ana doesn't know: “d'água”, segunda-feira (R$ 3,50)!",
    'He said "yes" to <script>alert(1)</script>',
    "e\u0301 \u00e9 İstanbul ΣΑΣ हिन्दी 漢字 ½ x² _a_b_ \u200d ﬁ Å",
    "a\x1c\x85b\ufeffc\t d\n\n  e",
    "'tis   we'll 1234567 WE'LL it'ſ " + "x" * 70,
    'at 14:30 ( a ) and "b" , " c " .d ‿ e‿f ‿‿ x ‿.',
    "🙂👩‍👩‍👧 \U000e0100 ",
]


def opened(browser, path, make=None):
    resize(browser, 1280)
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a transition would hide what is already drawn
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [still]})
    browser.get_log("browser")  # what a page before this one has said
    browser.get(path.as_uri())
    yield (make or Page)(browser)
    log = browser.get_log("browser")
    assert not log, log


def too_wide(browser):
    """By how many pixels the page is wider than what is seen of it."""
    return browser.execute_script("const page = document.documentElement; return page.scrollWidth - page.clientWidth")


class Page:
    def __init__(self, browser):
        self.browser = browser

    def all(self, css):
        return self.browser.find_elements("css selector", css)

    def one(self, css):
        return self.browser.find_element("css selector", css)

    def choose(self, select, value):
        from selenium.webdriver.support.ui import Select

        Select(self.one(f"#{select}")).select_by_value(str(value))

    def read(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def show(self, name):
        self.one(f"input[value={name}]").click()

    def press(self, *names):
        from selenium.webdriver import ActionChains, Keys

        for name in names:
            ActionChains(self.browser).send_keys(getattr(Keys, name)).perform()

    @property
    def focused(self):
        return self.browser.switch_to.active_element


CLICK_CELL = """
const [row, column] = arguments, canvas = document.querySelector("canvas.live");
const { left, top, width, height } = canvas.getBoundingClientRect();
const [rows, columns] = document.querySelector("#equation figure:last-child small").textContent.split(" × ");
const place = { clientX: left + (width * (column + 0.5)) / columns, clientY: top + (height * (row + 0.5)) / rows };
canvas.dispatchEvent(new MouseEvent("click", place))"""
EVERY_STEP = f"""
const [row, column, views, done] = arguments;
const clickCell = function () {{ {CLICK_CELL} }};
const ready = () => new Promise((go) => {{
  const look = () => document.documentElement.dataset.ready ? go() : setTimeout(look, 5);
  look();
}});
(async () => {{
  const found = [];
  for (const key of [...document.querySelectorAll(".step")].map(({{ dataset }}) => dataset.key)) {{
    for (const css of [`[data-key="${{key}}"]`, ...views.map((view) => `input[value=${{view}}]`)]) {{
      document.querySelector(css).click();
      await ready();
    }}
    clickCell(row, column);
    await ready();
    const {{ matrix, picked }} = live.drawn();
    found.push([key, matrix.at(picked.row, picked.column), picked]);
  }}
  done(found);
}})().catch((error) => done([[String(error), null, null]]));"""


class LivePage(Page):
    """The living page; every command waits until the model has run to its end."""

    def __init__(self, browser):
        super().__init__(browser)
        browser.execute_script("const load = document.getElementById('load'); if (load.checkVisibility()) load.click()")
        self.wait()

    def wait(self, what="ready", first="", *arguments, then="null"):
        """Run `first` in the page and wait: text is written, and heads are ranked, in several turns of the browser's
        loop  ->  the value of `then`. All in one question to the browser."""
        look = f"() => document.documentElement.dataset.{what} ? answer({then}) : setTimeout(look, 5)"
        script = f"{first}; const answer = arguments[arguments.length - 1], look = {look}; look()"
        return self.browser.execute_async_script(script, *arguments)

    def type(self, field, text, event="input"):
        """In one event, unlike the keys of a person, and as fast for a long text."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event(arguments[2]))"
        self.wait("ready", script, self.one(f"#{field}"), str(text), event)

    def click(self, css):
        """In one script: the page may be drawn again at any time, when the ranking is there."""
        script = "const it = document.querySelector(arguments[0]); it.scrollIntoView({block: 'center'}); it.focus();"
        self.wait("ready", f"{script} it.click()", css)

    def open(self, name):
        """The button with this data-key: a head, a step, a token, a bar."""
        self.click(f'[data-key="{name}"]')

    def open_steps(self):
        """The names of all steps, each while it is open."""
        for name in self.read("[...document.querySelectorAll('.step')].map(({ dataset }) => dataset.key)"):
            self.open(name)
            yield name

    def numbers(self, row, column, *views):
        """{name of a step: its number in this cell} of all steps, each while it is open and after it was shown in these
        views. All in one question to the browser."""
        found = self.browser.execute_async_script(EVERY_STEP, row, column, views)
        assert all(picked == {"row": row, "column": column} for _, _, picked in found)
        return {name: -np.inf if number is None else number for name, number, _ in found}

    def words_of(self, css):
        """The texts of all these elements, in one question to the browser."""
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText.trim())"
        return self.browser.execute_script(script, css)

    def at(self, row, column):
        """Choose a cell of the matrix that is open  ->  the number that is drawn in it."""
        then = "(({ matrix, picked }) => [matrix.at(picked.row, picked.column), picked])(live.drawn())"
        found, picked = self.wait("ready", CLICK_CELL, row, column, then=then)
        assert picked == {"row": row, "column": column}
        return -np.inf if found is None else found

    @property
    def output(self):
        return self.words_of("#output")[0]

    @property
    def steps(self):
        """The tokens that the model has read."""
        return self.words_of("#steps button bdi")

    @property
    def changes(self):
        return self.words_of("#change-list li")
