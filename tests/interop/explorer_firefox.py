"""The explorer in Firefox, which is asked over WebDriver BiDi: the same checks as in Chromium, for what they use.

`Firefox` starts the browser, and a `Tab` has the calls of a page that the checks make. Needs Firefox and websockets.
"""
import base64
import fnmatch
import itertools
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from explorer_browser import Browser, fail
from websockets.sync.client import connect

KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Enter": "\ue007",
        "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010", "PageUp": "\ue00e", "PageDown": "\ue00f",
        "Backspace": "\ue003", "Control": "\ue009", "Space": " "}
ROLES = {"button": "button", "link": "a[href]", "radio": "[role=radio]"}


class Firefox:
    """A browser and its connection."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory()
        self.downloads = Path(self.profile.name) / "downloads"
        self.downloads.mkdir()
        wanted = {"browser.download.folderList": 2, "browser.download.dir": str(self.downloads),
                  "browser.download.alwaysOpenPanel": False,
                  # Pixels of a canvas as they are: against fingerprints Firefox may change some of them.
                  "privacy.fingerprintingProtection": False, "privacy.baselineFingerprintingProtection": False}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wanted.items()]
        (Path(self.profile.name) / "user.js").write_text("".join(lines))
        command = [program, "--headless", "--remote-debugging-port=0", "--profile", self.profile.name]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            found = re.search(r"WebDriver BiDi listening on (ws://\S+)", line)
            if found:
                break
        else:
            fail("Firefox ended before it listened")
        self.socket = connect(f"{found[1]}/session", max_size=None)
        self.numbers, self.events, self.routes = itertools.count(1), [], {}
        capabilities = self.ask("session.new", capabilities={})["capabilities"]
        self.version = capabilities["browserVersion"]
        self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def ask(self, method, **params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=60))
            if answer.get("id") != number:
                self.told(answer)
            elif answer["type"] == "error":
                raise ValueError(f"{method}: {answer['message']}")
            else:
                return answer["result"]

    def told(self, message):
        """Keeps an event, and answers a request that a route holds."""
        self.events.append(message)
        params = message.get("params", {})
        if params.get("isBlocked"):
            url = params["request"]["url"]
            body = next((body for pattern, (_, body) in self.routes.items() if fnmatch.fnmatch(url, pattern)), None)
            # The answers to these commands have no event of their own, and nobody waits for them.
            held = {"request": params["request"]["request"]}
            if body is None:
                command = {"method": "network.continueRequest", "params": held}
            else:
                content = base64.b64encode(body.encode()).decode()
                kind = {"name": "content-type", "value": {"type": "string", "value": "application/json"}}
                answer = {"statusCode": 200, "headers": [kind], "body": {"type": "base64", "value": content}}
                command = {"method": "network.provideResponse", "params": held | answer}
            self.socket.send(json.dumps({"id": next(self.numbers), **command}))

    def close(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.profile.cleanup()


class Element:
    """What a selector finds, of which a check asks one."""

    def __init__(self, tab, found):
        self.tab, self.found = tab, found

    def of(self, what):
        return self.tab.evaluate(f"((all) => {what})({self.found})")

    def count(self):
        return self.of("all.length")

    def nth(self, number):
        return Element(self.tab, f"{self.found}.slice({number}, {number + 1})")

    first = property(lambda self: self.nth(0))

    def inner_text(self):
        return self.of("all[0].innerText")

    def all_inner_texts(self):
        return self.of("all.map((own) => own.innerText)")

    def get_attribute(self, name):
        return self.of(f"all[0].getAttribute({json.dumps(name)})")

    def bounding_box(self):
        return self.of("((box) => ({x: box.x, y: box.y, width: box.width, height: box.height}))"
                       "(all[0].getBoundingClientRect())")

    def all_text_contents(self):
        return self.of("all.map((own) => own.textContent)")

    def all(self):
        return [self.nth(number) for number in range(self.count())]

    def evaluate(self, function):
        return self.of(f"({function})(all[0])")

    def locator(self, selector):
        return Element(self.tab, f"{self.found}.flatMap((own) => [...own.querySelectorAll({json.dumps(selector)})])")

    def get_by_role(self, role, name, exact=False):
        text = json.dumps(name)
        test = f"own.innerText.trim() === {text}" if exact else f"own.innerText.includes({text})"
        return Element(self.tab, f"{self.locator(ROLES[role]).found}.filter((own) => {test})")

    def wait_for(self):
        self.tab.wait_until(self.count, self.found)

    def focus(self):
        self.of("all[0].focus()")

    def click(self):
        # What is not in sight is scrolled to first.
        self.of("all[0].scrollIntoViewIfNeeded?.() ?? all[0].scrollIntoView({ block: 'nearest', inline: 'nearest' })")
        box = self.bounding_box()
        self.tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def fill(self, text):
        self.of("[all[0].focus(), all[0].select()]")
        self.tab.keys(*(text or ["Backspace"]))


class Tab:
    """The calls of a page that the checks make."""

    def __init__(self, firefox, width, height):
        """A tab of its own, which knows nothing of others: as a window of another person."""
        self.firefox, self.held = firefox, None
        self.person = firefox.ask("browser.createUserContext")["userContext"]
        self.context = firefox.ask("browsingContext.create", type="tab", userContext=self.person)["context"]
        self.keyboard = self.mouse = self
        self.set_viewport_size({"width": width, "height": height})

    def set_viewport_size(self, size):
        self.firefox.ask("browsingContext.setViewport", context=self.context, viewport=size)

    def goto(self, url):
        # An address that is changed in place meanwhile makes Firefox answer before the page has gone.
        self.evaluate("window.isLeft = true")
        self.firefox.ask("browsingContext.navigate", context=self.context, url=url, wait="complete")
        until = time.monotonic() + 20
        while self.evaluate("window.isLeft || document.readyState !== 'complete'"):
            if time.monotonic() > until:
                fail(f"Firefox does not open {url[:200]}")
            time.sleep(0.02)

    def evaluate(self, expression, argument=None, context=None):
        target = {"context": context or self.context}
        of = f"(it) => typeof it === 'function' ? it({json.dumps(argument)}) : it"
        text = f"Promise.resolve(({of})({expression})).then((it) => JSON.stringify(it ?? null))"
        answer = self.firefox.ask("script.evaluate", target=target, expression=text, awaitPromise=True)
        if answer["type"] == "exception":
            raise ValueError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    url = property(lambda self: self.evaluate("location.href"))

    def wait_for_timeout(self, milliseconds):
        time.sleep(milliseconds / 1000)
        self.evaluate("0")

    def keys(self, *keys):
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.act({"type": "key", "id": "keys", "actions": actions})

    press = keys

    def down(self, key):
        self.held = key

    def up(self, _):
        self.held = None

    def go_back(self):
        self.go_by(-1)

    def go_forward(self):
        self.go_by(1)

    def go_by(self, step):
        self.evaluate("(window.webstrata.ready = false, null)")
        self.firefox.ask("browsingContext.traverseHistory", context=self.context, delta=step)

    def type(self, text):
        self.keys(*text)

    def wheel(self, _, down):
        """A turn of the wheel where the mouse is."""
        where = {"x": self.at[0], "y": self.at[1]}
        turn = {"type": "scroll", **where, "deltaX": 0, "deltaY": down}
        key = lambda kind: {"type": kind, "value": KEYS[self.held]}
        turns = [{"type": "pause"}, turn, {"type": "pause"}] if self.held else [turn]
        sources = [{"type": "wheel", "id": "wheel", "actions": turns}]
        if self.held:
            keys = [key("keyDown"), {"type": "pause"}, key("keyUp")]
            sources.append({"type": "key", "id": "keys", "actions": keys})
        self.act(*sources)

    def move(self, x, y):
        self.click(x, y, is_pressed=False)

    def click(self, x, y, is_pressed=True):
        self.at = int(x), int(y)
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y)}]
        if is_pressed:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})

    def act(self, *sources):
        self.firefox.ask("input.performActions", context=self.context, actions=list(sources))

    def wait_for_selector(self, selector):
        self.wait_until(self.locator(selector).count, selector)

    def wait_until(self, test, what):
        until = time.monotonic() + 20
        while not test():
            if time.monotonic() > until:
                fail(f"Firefox shows no {what} at {self.url[:200]}")
            time.sleep(0.02)

    def route(self, pattern, answer):
        """Answers requests of this pattern: `answer` is called with what has `fulfill`, as in Chromium."""
        kept = {}
        answer(SimpleNamespace(fulfill=lambda json: kept.update(json=json)))
        held = self.firefox.ask("network.addIntercept", phases=["beforeRequestSent"], contexts=[self.context])
        self.firefox.routes[pattern] = held["intercept"], json.dumps(kept["json"])

    def unroute(self, pattern):
        intercept, _ = self.firefox.routes.pop(pattern)
        self.firefox.ask("network.removeIntercept", intercept=intercept)

    def locator(self, selector):
        return Element(self, f"[...document.querySelectorAll({json.dumps(selector)})]")

    def get_by_role(self, role, name, exact=False):
        return Element(self, "[document]").get_by_role(role, name, exact)

    def get_by_label(self, text):
        test = (f"own.getAttribute('aria-label') === {json.dumps(text)} || "
                f"[...(own.labels || [])].some((label) => label.textContent === {json.dumps(text)})")
        return Element(self, f"[...document.querySelectorAll('input, button')].filter((own) => {test})")

    def get_by_placeholder(self, text):
        return self.locator(f"[placeholder={json.dumps(text, ensure_ascii=False)}]")


class FirefoxBrowser(Browser):
    """As a browser of the other checks."""

    def __init__(self, firefox, base, width=1280, height=800, scheme="light"):
        self.firefox, self.base, self.problems, self.context = firefox, base, [], self
        self.page, self.is_wrong_scheme = Tab(firefox, width, height), scheme == "dark"

    def open(self, **state):
        shown = super().open(**state)
        if self.is_wrong_scheme:
            # A window cannot be told what its system prefers: its person chooses.
            self.page.press("t")
            self.is_wrong_scheme = False
        return shown

    def close(self):
        self.firefox.ask("browsingContext.close", context=self.page.context)
        self.firefox.ask("browser.removeUserContext", userContext=self.page.person)

    def framed(self, site):
        """Of a page of another origin: how wide its first picture is, and how many views its frame names."""
        # To wait for a frame that is refused is an error.
        self.firefox.ask("browsingContext.navigate", context=self.page.context, url=site, wait="none")
        self.page.wait_until(lambda: self.page.evaluate("document.images[0]?.complete"), "picture of another site")
        self.page.wait_for_timeout(1000)
        width = self.page.evaluate("document.images[0].naturalWidth")
        tree = self.firefox.ask("browsingContext.getTree", root=self.page.context)["contexts"][0]
        frame = tree["children"][0]["context"]
        return width, self.page.evaluate("document.querySelectorAll('#views a').length", context=frame)

    def paper(self):
        """The bytes of the PDF that is printed."""
        return base64.b64decode(self.firefox.ask("browsingContext.print", context=self.page.context,
                                                 page={"width": 21.0, "height": 29.7})["data"])

    def saved(self, press):
        before = set(self.firefox.downloads.iterdir())
        press()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            self.page.wait_for_timeout(100)
            after = set(self.firefox.downloads.iterdir()) - before
            # A file that is being written has another one beside it.
            if len(after) == 1 and (found := after.pop()).suffix != ".part" and found.stat().st_size:
                return found.read_bytes()
        fail(f"nothing is saved at {self.page.url[:200]}")

    def clean(self, where):
        others = []
        for event in self.firefox.events:
            params = event.get("params", {})
            if (params.get("context") or params.get("source", {}).get("context")) != self.page.context:
                others.append(event)
            elif event.get("method") == "log.entryAdded":
                self.problems.append(f"{params.get('type')}: {params.get('text')}")
            elif event.get("method") == "network.beforeRequestSent":
                url = params["request"]["url"]
                if not url.startswith((self.base, "blob:", "about:", "data:")):
                    self.problems.append(f"asks {url[:200]}")
        self.firefox.events[:] = others
        super().clean(where)
