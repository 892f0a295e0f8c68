"""What the tests of the core share."""

import gc
import itertools
import os
import shutil
import signal

# Before NumPy is loaded: these matrices are small, and threads that wait for each other on a busy machine are slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TQDM_MININTERVAL", "0.05")  # tests that send a signal wait for a bar that moves

import numpy as np
import pytest

from transformer_np import cli
from transformer_np.data import english_portuguese
from transformer_np.inspection.samples import randomised, small_model
from transformer_np.support.processes import cores


@pytest.hookimpl(optionalhook=True)  # of a plugin that may be missing
def pytest_xdist_auto_num_workers():
    """On one core `-n auto` runs the tests here: a process beside this one would only make it wait."""
    return 0 if cores() == 1 else None  # None: xdist decides


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """Tests in a browser are long."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker("long")
    items[:] = spread(items)


def spread(items):
    """The notebooks evenly among the files of the other tests: processes that share a list begin with equal parts of
    it, and no core should wait at the end for those that got all notebooks."""
    notebooks = [item for item in items if item.get_closest_marker("notebooks")]
    others = [item for item in items if not item.get_closest_marker("notebooks")]
    mixed, taken = [], 0
    for _, tests in itertools.groupby(others, key=lambda item: item.path):  # a file's fixtures are made once
        mixed += tests
        due = len(notebooks) * (len(mixed) - taken) // max(1, len(others))
        mixed += notebooks[taken:due]
        taken = due
    return mixed + notebooks[taken:]


def pytest_collection_finish(session):
    """The collected tests stay to the end: no search for garbage has to look at them, and few are enough."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 50)


OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run --no-default-browser-check "
    # no new process for each page, and none in reserve
    "--process-per-site --disable-features=SpareRendererForSitePerProcess,BackForwardCache"
).split()
SECONDS = 600  # of a script in a page: the machine may do other things too


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, which is not there")
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("the page is tested in chromium with its chromedriver, which are not there")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_script_timeout(SECONDS)
    browser.command_executor.client_config.timeout = SECONDS + 10  # of a request, after which nothing fits any more
    try:
        yield browser
    finally:
        browser.quit()


@pytest.fixture(autouse=True)
def usual_signals():
    """Also where the tests run in the background of a script, which has SIGINT ignored, or under nohup, which has
    SIGHUP ignored: processes that a test starts would inherit this. And no test leaves another handler behind."""
    usual = {signal.SIGINT: signal.default_int_handler}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    after = {number: signal.signal(number, handler) for number, handler in before.items()}
    assert after == usual


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of the test's own, from which its commands are typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def corpus():
    """The built-in English–Portuguese pairs, made once."""
    return tuple(english_portuguese())


@pytest.fixture
def few_pairs(corpus, monkeypatch):
    """The built-in translator learns from one pair in 40."""
    monkeypatch.setattr("transformer_np.data.english_portuguese", lambda: list(corpus[::40]))


@pytest.fixture
def drawn(monkeypatch):
    """(name of the function, arguments, options) of every call into plots."""
    from transformer_np import plots

    calls, pictures = [], "wavelengths softmax_saturation architecture gradient_flow decoding_steps sampling head_view"

    def watch(name, real):
        monkeypatch.setattr(plots, name, lambda *a, **k: calls.append((name, a, k)) or real(*a, **k))

    for name in [*pictures.split(), "attention", "contributions"]:
        watch(name, getattr(plots, name))
    return calls


VERBS = {"sings": "canta", "reads": "lê", "sleeps": "dorme"}
PAIRS = [f"{who} {verb}\t{who} {verbo}\n" for who in ("Ana", "Maria", "he") for verb, verbo in VERBS.items()]
JUDGED = {"+": ("good", "fine", "great", "lovely"), "-": ("bad", "poor", "awful", "dull")}


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory):
    """A folder with three runs that have learned a little, each with its data beside it: translate, gpt, classify."""
    folder, size = tmp_path_factory.mktemp("runs"), "--layers 2 --heads 2 --d-model 16 --d-ff 16 --batch-size 16"
    labelled = "".join(f"{label}\ta {word} film\n" for label, words in JUDGED.items() for word in words)
    for kind, flags, data in (
        ("translate", "--pairs", "".join(PAIRS) * 6),
        ("gpt", "--block-size 16 --text", "the cat sat on the mat and the dog sat on the cat\n" * 40),
        ("classify", "--data", labelled * 8),
    ):
        file = folder / f"{kind}.txt"
        file.write_text(data, encoding="utf-8")
        command = f"train {kind} --steps 60 {size} --workers 1 -q --out".split()
        assert cli.main([*command, str(folder / kind), *flags.split(), str(file)]) == 0
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def random_module(rng):
    """random_module(module) -> the same module with every parameter random."""
    return lambda module, scale=1.0: randomised(module, rng, scale)


@pytest.fixture
def random_model():
    """random_model(seed=…, scale=…, **config) -> a small Transformer, all sizes different, every parameter random."""

    def make(seed=0, scale=1.0, **config):
        config = {"num_encoder_layers": 2, "dropout": 0.0, "dtype": "float64", "seed": seed, **config}
        return randomised(small_model("Transformer", **config), np.random.default_rng(seed), scale)

    return make
