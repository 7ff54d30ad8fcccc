"""A headless Chromium, controlled through chromedriver: as much of the W3C WebDriver protocol as the tests need."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # key of an element's id, from the protocol
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Control": "\ue009", "ArrowUp": "\ue013", "ArrowDown": "\ue015",
        "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Tab": "\ue004"}


def missing():
    """Why no browser can be used here; None if one can."""
    for program in ("chromedriver", "chromium"):
        if not shutil.which(program):
            return "there is no %s" % program
    return None


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="tsnap-browser-")
        self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
                                       env=dict(os.environ, HOME=self.profile))
        self.session = None
        try:
            for line in self.driver.stdout:
                port = re.search(r"on port (\d+)\.", line)
                if port:
                    break
            else:
                raise RuntimeError("chromedriver did not start")
            self.root = "http://127.0.0.1:%s" % port.group(1)
            more = ["--user-data-dir=%s/data" % self.profile, "--window-size=%d,%d" % (width, height)]
            options = {"binary": shutil.which("chromium"),
                       "args": ARGUMENTS + more + (["--force-dark-mode"] if dark else [])}
            wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options}
            self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session:
            self.command("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.root + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy, whatever the environment says
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s %s: %s" % (method, path, json.load(error)["value"]["message"])) from None

    def command(self, method, path, body=None):
        return self.call(method, "/session/%s%s" % (self.session, path), body)

    def open(self, url):
        self.command("POST", "/url", {"url": url})

    def script(self, text, *arguments):
        return self.command("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def find(self, selector):
        return self.command("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def point_at(self, element, click=False):
        """Moves the pointer to the middle of an element, as a user does."""
        move = [{"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {ELEMENT: element}}]
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.command("POST", "/actions", {"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": move + (press if click else [])}]})

    def click(self, element):
        self.point_at(element, click=True)

    def drag(self, element, from_x, to_x):
        """Drags from one place to another, in pixels right of the middle of the element."""
        move = {"type": "pointerMove", "duration": 0, "y": 0, "origin": {ELEMENT: element}}
        actions = [dict(move, x=int(from_x)), {"type": "pointerDown", "button": 0}, dict(move, x=int(to_x)), {"type": "pointerUp", "button": 0}]
        self.command("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                                                       "actions": actions}]})

    def press(self, *keys):
        """Types keys one after the other; "Control+f" holds the first while it types the second."""
        actions = []
        for key in keys:
            chord = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
            actions += [{"type": "keyDown", "value": part} for part in chord]
            actions += [{"type": "keyUp", "value": part} for part in reversed(chord)]
        self.command("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def resize(self, width, height):
        self.command("POST", "/window/rect", {"width": width, "height": height})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.command("GET", "/screenshot")))

    def log(self):
        """Entries of the browser's log since the last call."""
        return self.call("POST", "/session/%s/se/log" % self.session, {"type": "browser"})
