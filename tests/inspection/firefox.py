"""Firefox without a driver: its own remote protocol, Marionette, with what the tests ask of a browser."""

import json
import socket
import subprocess
import time


class Firefox:
    """A headless Firefox with its own profile in `folder`; `get` and `execute_script` are those of selenium."""

    def __init__(self, program, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n', "utf-8")
        self.stream = None
        options = "--headless", "--no-remote", "--marionette", "--profile", str(folder)
        self.process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with self._connected(port) as connection:
                self.stream = connection.makefile("rwb")  # it keeps the connection open
            self._message()
            self.ask("WebDriver:NewSession", capabilities={"acceptInsecureCerts": True})
        except BaseException:
            self.quit()
            raise

    def _connected(self, port, seconds=120):
        end = time.monotonic() + seconds
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=seconds)
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.2)

    def _message(self):
        """A message is its length in bytes, a colon, and JSON."""
        length = b""
        while (digit := self.stream.read(1)) != b":":
            length += digit
        return json.loads(self.stream.read(int(length)))

    def ask(self, command, **parameters):
        text = json.dumps([0, 1, command, parameters]).encode()
        self.stream.write(b"%d:%b" % (len(text), text))
        self.stream.flush()
        *_, error, result = self._message()
        if error:
            raise RuntimeError(error["message"])
        return result

    def get(self, url):
        self.ask("WebDriver:Navigate", url=url)

    def execute_script(self, script, *arguments, command="WebDriver:ExecuteScript"):
        return self.ask(command, script=script, args=list(arguments), sandbox=None)["value"]

    def execute_async_script(self, script, *arguments):
        return self.execute_script(script, *arguments, command="WebDriver:ExecuteAsyncScript")

    def quit(self):
        if self.stream:
            self.stream.close()
        self.process.terminate()
        self.process.wait(30)
