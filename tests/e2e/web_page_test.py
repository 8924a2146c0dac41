#!/usr/bin/python3
"""The page of a fabric's picture in a browser without a screen: the tree is drawn, data moves, a link is cut by its button.

With CEPHEUS_SCREENSHOTS=DIRECTORY it writes pictures there, 1280 and 390 pixels wide, light and dark.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import sys
import unittest
import urllib.parse

from live import TIME_LIMIT, LiveRun
from web_fabric import Web

NEEDED = "chromium chromium-driver python3-selenium"
HOSTS = 16
FABRIC = ("--shape", "fat-tree:4")


def browser(width, dark):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(TIME_LIMIT)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    return driver


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = LiveRun("--max", 1 << 20, hosts=HOSTS, fabric=FABRIC)
        cls.run_.__enter__()
        cls.web = Web(cls.run_.switch.socket, "--control")

    @classmethod
    def tearDownClass(cls):
        cls.web.close()
        cls.run_.__exit__()

    def open(self, width=1280, dark=False):
        driver = browser(width, dark)
        self.addCleanup(driver.quit)
        driver.get(self.web.address)
        self.wait(driver, "document.querySelectorAll('.trees line').length > 0", "a group's tree")
        return driver

    def wait(self, driver, condition, what):
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(driver, TIME_LIMIT).until(lambda d: d.execute_script(f"return {condition}"), f"{what} did not appear")

    def text(self, driver, selector):
        return driver.execute_script("return document.querySelector(arguments[0]).innerText", selector)

    def click(self, driver, label):
        """Clicks the panel's button with a label that begins so."""
        self.wait(driver, f"[...document.querySelectorAll('#panel button')].some((b) => b.textContent.startsWith('{label}'))", f"a button '{label}'")
        driver.execute_script("[...document.querySelectorAll('#panel button')].find((b) => b.textContent.startsWith(arguments[0])).click()", label)

    def assert_clean(self, driver):
        """No error on the console, and no request to another server."""
        self.assertEqual([entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"], [])
        result = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        urls = [entry["params"]["request"]["url"] for entry in result if entry["method"] == "Network.requestWillBeSent"]
        self.assertTrue(urls)
        self.assertEqual([url for url in urls if not url.startswith("data:") and urllib.parse.urlsplit(url).netloc != self.web.netloc], [])

    def test_shows_the_tree_and_moving_data(self):
        driver = self.open()
        self.assertEqual(driver.execute_script("return document.querySelectorAll('circle.host').length"), HOSTS)
        self.assertEqual(driver.execute_script("return document.querySelectorAll('rect.switch').length"), 20)
        self.wait(driver, "document.querySelectorAll('.dots circle').length > 0", "data on its way")
        place = "document.querySelector('.dots circle').getAttribute('transform')"
        before = driver.execute_script(f"return {place}")
        self.wait(driver, f"document.querySelector('.dots circle') && {place} !== '{before}'", "data that moves")
        self.wait(driver, "document.querySelector('#chart polyline').getAttribute('points').split(' ').length > 3", "a chart")
        self.assertIn(f"{HOSTS} members", self.text(driver, "#groups"))
        self.assertIn(f"{HOSTS} of {HOSTS} hosts in use", self.text(driver, "#summary"))
        self.assert_clean(driver)

    # A trunk in the group's tree: multicast returns by another path, and the job continues.
    def test_cuts_a_trunk_by_its_button_and_the_job_goes_on(self):
        driver = self.open()
        view = self.web.answered_view()
        used = [view["cables"][i] for group in view["groups"] for i in group["cables"]]
        link = next(cable["link"] for cable in used if cable["to"] >= 0 and cable["state"] == "up")
        name = f"document.querySelector('[aria-label^=\"{link},\"]')"
        driver.execute_script(f"{name}.focus(); {name}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
        self.click(driver, "Cut the link")
        self.assertNotEqual(self.web.cable(link)["state"], "cut", "the button requires a second click")
        self.click(driver, "Cut the link: sure?")
        self.wait(driver, "document.querySelector('.cable.cut') !== null", "the red line")
        colour = driver.execute_script("return getComputedStyle(document.querySelector('.cable.cut')).stroke")
        self.assertEqual(colour, "rgb(192, 0, 32)")
        self.run_.wait_for_payload(1 << 22)
        self.click(driver, "Mend the link")
        self.wait(driver, "document.querySelector('.cable.cut') === null", "the mended line")
        self.run_.wait_for_payload(1 << 22)
        self.assert_clean(driver)

    def test_fits_wide_and_narrow_in_light_and_dark(self):
        for width in (1280, 390):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    driver = self.open(width, dark)
                    self.wait(driver, "document.querySelectorAll('.dots circle').length > 0", "data on its way")
                    wide = driver.execute_script("return document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, "the page itself does not scroll sideways")
                    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
                    self.assertEqual(ground, "rgb(22, 25, 29)" if dark else "rgb(255, 255, 255)")
                    self.keep_picture(driver, f"web-{width}-{'dark' if dark else 'light'}.png")
                    self.assert_clean(driver)
                    driver.quit()

    def keep_picture(self, driver, name):
        directory = os.environ.get("CEPHEUS_SCREENSHOTS")
        if directory:
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            driver.save_screenshot(str(pathlib.Path(directory) / name))


def why_no_browser():
    """The reason why no browser can be driven here; None if one can."""
    if importlib.util.find_spec("selenium") is None or shutil.which("chromedriver") is None:
        return f"there is no browser to drive; as root: apt-get install --no-install-recommends {NEEDED}"
    from selenium.common.exceptions import WebDriverException

    try:
        browser(1280, False).quit()
    except WebDriverException as reason:
        return f"the browser does not start here: {reason.msg}; start chromium --headless by hand to see why"
    return None


if __name__ == "__main__":
    if reason := why_no_browser():
        print(f"web_page_test: SKIPPED: {reason}")
        sys.exit(77)
    unittest.main()
