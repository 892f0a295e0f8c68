"""What a test does with a page in the browser."""

import re


def opened(browser, path, make=None):
    resize(browser, 1280)
    browser.get(path.as_uri())
    yield (make or Page)(browser)
    assert browser.get_log("browser") == []


def resize(browser, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


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

    def show(self, name):
        self.one(f"input[value={name}]").click()

    def press(self, *names):
        from selenium.webdriver import ActionChains, Keys

        for name in names:
            ActionChains(self.browser).send_keys(getattr(Keys, name)).perform()

    @property
    def focused(self):
        return self.browser.switch_to.active_element


class LivePage(Page):
    """The living page; every command waits until the model has run to its end."""

    def __init__(self, browser):
        super().__init__(browser)
        self.wait()

    def wait(self, what="ready"):
        """Text is written, and heads are ranked, in several turns of the browser's loop."""
        from selenium.webdriver.support.ui import WebDriverWait

        done = f"return document.documentElement.dataset.{what}"
        WebDriverWait(self.browser, 120, poll_frequency=0.01).until(lambda browser: browser.execute_script(done))

    def type(self, field, text, event="input"):
        """In one event, unlike the keys of a person, and as fast for a long text."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event(arguments[2]))"
        self.browser.execute_script(script, self.one(f"#{field}"), str(text), event)
        self.wait()

    def click(self, css):
        """In one script: the page may be drawn again at any time, when the ranking is there."""
        script = "const it = document.querySelector(arguments[0]); it.scrollIntoView({block: 'center'}); it.focus();"
        self.browser.execute_script(f"{script} it.click()", css)
        self.wait()

    def open(self, name):
        """The button with this data-key: a head, a step, a token, a bar."""
        self.click(f'[data-key="{name}"]')

    def words_of(self, css):
        """The texts of all these elements, in one question to the browser."""
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText.trim())"
        return self.browser.execute_script(script, css)

    def read(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def at(self, row, column):
        """Choose a cell of the matrix that is open  ->  the number that is said to be in it."""
        script = "document.querySelector('canvas.live').dispatchEvent(new MouseEvent('click', arguments[0]))"
        size = self.read("document.querySelector('#equation figure:last-child small').textContent").split(" × ")
        box = self.read("(({left, top, width, height}) => [left, top, width, height])"
                        "(document.querySelector('canvas.live').getBoundingClientRect())")  # fmt: skip
        x, y = (box[i] + box[i + 2] * (n + 0.5) / int(size[1 - i]) for i, n in enumerate((column, row)))
        self.browser.execute_script(script, {"clientX": x, "clientY": y})
        self.wait()
        if "∂L/∂" in (text := self.one("#cell").text):
            return float(re.search(r" = (\S+):", text)[1].replace("−", "-"))
        return number(re.findall(r"−?[\d.]+", text)[-1])

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

    def numbers(self, table):
        """The second column of a table."""
        return [*map(number, self.words_of(f"#{table} tbody td:nth-child(2)"))]


def number(text):
    return float(text.replace("−", "-"))
