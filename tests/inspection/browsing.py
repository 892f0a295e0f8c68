"""What a test does with a page in the browser."""


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

    def hover(self, element):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).move_to_element(element).perform()

    def press(self, *names):
        from selenium.webdriver import ActionChains, Keys

        for name in names:
            ActionChains(self.browser).send_keys(getattr(Keys, name)).perform()

    @property
    def focused(self):
        return self.browser.switch_to.active_element
