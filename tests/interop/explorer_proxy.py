"""The explorer and the API below a path of another server: nginx and Caddy, configured as the book says."""
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from explorer_browser import Browser, fail

PREFIX = "/webstrata"

NGINX = """
daemon off;
master_process off;
pid {place}/nginx.pid;
error_log {place}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
  server {{
    listen {at};
    location /webstrata/ {{
      proxy_pass http://{server}/;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Prefix /webstrata;
    }}
  }}
}}
"""

CADDY = """
{{
  admin off
  auto_https off
}}
http://{at} {{
  redir /webstrata /webstrata/
  handle_path /webstrata/* {{
    reverse_proxy {server} {{
      header_up Host {{upstream_hostport}}
      header_up X-Forwarded-Prefix /webstrata
    }}
  }}
}}
"""

PROXIES = {
    "nginx": (NGINX, lambda config, place: ["nginx", "-p", place, "-e", f"{place}/nginx.log", "-c", config]),
    "caddy": (CADDY, lambda config, place: ["caddy", "run", "--adapter", "caddyfile", "--config", config]),
}


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def text_of(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def check_views(chromium, base, url):
    """Each view is drawn, a typed question is answered, and the address of each opens the same picture again."""
    shared = 0
    states = [{}, {"url": url}, {"url": url, "dir": "in"}, {"v": "dates", "url": url},
              {"v": "backlinks", "url": url.split("/")[2]}, {"v": "neighbourhood", "url": url}, {"v": "store"}]
    browser = Browser(chromium, base)
    for state in states:
        shown = browser.open(**state)
        address, view = browser.page.url, browser.page.evaluate("window.webstrata.view")
        if state.get("v"):
            browser.page.get_by_role("button", name="Data", exact=True).click()
            calls = [own for own in browser.page.locator("dialog pre").all_inner_texts() if "curl" in own]
            if not calls or not all(f"curl '{base}/v1/" in own for own in calls):
                fail(f"Data of {state} at {base}: {calls}")
        other = Browser(chromium, base)
        other.page.goto(address)
        if other.ready(view) != shown:
            fail(f"{address} opens another picture")
        other.clean(address)
        other.context.close()
        shared += 1
    browser.open()
    browser.page.locator("#q").fill(url)
    browser.page.keyboard.press("Enter")
    browser.ready("barcode")
    browser.page.locator("a.mark").click()
    browser.ready("search")
    if urllib.parse.urlsplit(browser.page.url).path != f"{PREFIX}/":
        fail(f"the mark leads to {browser.page.url}")
    browser.clean(base)
    browser.context.close()
    return shared


def check_links(base, server, url):
    """Absolute URLs lead to the proxy, and answers are those of the server."""
    documented = json.loads(text_of(f"{base}/v1/openapi.json"))["servers"]
    if documented != [{"url": base}]:
        fail(f"openapi.json says {documented} and not {base}")
    question = f"/v1/links?url={urllib.parse.quote(url, safe='')}"
    if json.loads(text_of(base + question)) != json.loads(text_of(f"http://{server}{question}")):
        fail(f"{base}{question} is another answer")
    lines = text_of(f"{base}/timemap/link/{url}").splitlines()
    if not lines[1].startswith(f"<{base}/timemap/link/{url}>") or f"<{base}/timegate/{url}>" not in lines[2]:
        fail(f"the TimeMap of {url} at {base}: {lines[:3]}")
    itself = lines[1].split(">")[0][1:]
    if text_of(itself).splitlines() != lines:
        fail(f"{itself} is another TimeMap")


def check_proxies(chromium, server, url, place):
    """`server`: the address of a server that runs; `place`: a directory for the proxies."""
    for name, (template, command) in PROXIES.items():
        if not shutil.which(name):
            print(f"left out: {name} is not installed")
            continue
        own, at = place / name, free_address()
        own.mkdir()
        config = own / "config"
        config.write_text(template.format(place=own, at=at, server=server))
        environment = {"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(own)}
        proxy = subprocess.Popen(command(str(config), str(own)), env=environment, stdout=subprocess.DEVNULL,
                                 stderr=(own / "log").open("w"))
        base = f"http://{at}{PREFIX}"
        try:
            for _ in range(300):
                try:
                    text_of(f"{base}/v1")
                    break
                except urllib.error.HTTPError as error:
                    fail(f"{name}: {error} {error.read()[:300]}")
                except OSError:
                    if proxy.poll() is not None:
                        fail(f"{name} ended: {(own / 'log').read_text()[-500:]}")
                    time.sleep(0.1)
            shared = check_views(chromium, base, url)
            check_links(base, server, url)
        finally:
            proxy.terminate()
            proxy.wait()
        print(f"{name}: {shared} views below {PREFIX}/, each opened again by its address; links lead to the proxy")
