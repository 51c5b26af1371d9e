"""The page in a headless Chromium: keys, 50,000 proposals, Chinese, hostile text, contrast, accessible names."""

import time
from unittest.mock import patch

import pytest

from curation.review_page.desk import Desk
from tests.review_page.browser import CHROMIUM, browser, served
from tests.review_page.given import HOSTILE, POI, PROPOSALS, SEEDS, make_workspace, many

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

ADD, MERGE, RENAME, DESCRIBE, SPLIT = (one.proposal_id for one in PROPOSALS)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        tab.look()
        yield tab


@pytest.fixture
def page(tab, tmp_path):
    """The page of the small workspace, open in the tab; nothing may go wrong in it."""
    tab.errors.clear()
    with served(make_workspace(tmp_path / "w", PROPOSALS)) as (address, desk):
        tab.open(address)
        tab.wait("document.querySelector('#detail h2')")
        tab.desk = desk
        yield tab
        assert tab.errors == []
        tab.send("Page.navigate", url="about:blank")


def status(tab, key):
    return tab.desk.proposal(key)["status"]


def waits(tab, count):
    tab.wait(f"document.querySelector('#tab-proposals .count').innerText === '{count}'")


def test_the_address_bar_does_not_keep_the_token(page):
    assert page.run("location.search") == ""
    assert page.run("document.cookie") == ""
    assert page.run("document.title") == "Review of w"


def test_the_name_that_the_command_was_given_is_shown_and_kept_with_a_decision(tab, tmp_path):
    drop = "- {op: drop, node: discovery.area_summaries}\n"
    root = make_workspace(tmp_path / "w", PROPOSALS)
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "decisions.yaml").write_text(drop)
    tab.errors.clear()
    with served(root, "李雷") as (address, desk):
        tab.open(address)
        tab.wait("document.querySelector('#detail h2')")
        assert tab.run("document.getElementById('by').value") == "李雷"
        tab.press("a")
        tab.wait("document.querySelector('#tab-proposals .count').innerText === '4'")
        assert [value["by"] for value in desk._decided("proposal:").values()] == ["李雷"]
        tab.run("document.getElementById('apply').click()")
        tab.wait("document.getElementById('apply-body').innerText.includes('discovery.area_summaries is dropped: ')")
        tab.send("Page.navigate", url="about:blank")
    assert tab.errors == []


def test_accept_reject_undo_and_redo_with_keys_alone(page):
    page.press("a")
    waits(page, 4)
    page.press("r")
    waits(page, 3)
    assert (status(page, ADD), status(page, RENAME)) == ("accepted", "rejected")
    page.wait(
        "document.querySelector('.row[aria-selected=true] .main').innerText.startsWith('Split realtime_weather')"
    )
    page.press("u", "u")
    waits(page, 5)
    page.press("U")
    waits(page, 4)
    assert (status(page, ADD), status(page, RENAME)) == ("accepted", "waiting")
    page.press("k", "k", "c")
    waits(page, 5)


def test_keys_that_come_faster_than_answers_are_taken_one_by_one(page):
    keys = "for (const key of 'arara') document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    page.run(keys.replace("document.dispatch", "document.body.dispatch"))
    waits(page, "")
    order = page.desk.find_proposals({})
    assert [status(page, key) for key in order] == ["accepted", "rejected", "accepted", "rejected", "accepted"]


def test_an_edit_is_written_checked_and_shown(page):
    page.press("e")
    page.wait("document.activeElement.matches('.form input')")
    page.run("document.activeElement.select()")
    page.type("two words")
    page.press("Enter")
    page.wait("document.querySelector('#status').innerText.includes('letters, digits')")
    page.run("document.activeElement.select()")
    page.type("露营")
    page.press("Enter")
    waits(page, 4)
    assert page.desk.proposal(ADD)["decided"] == {"decision": "edit", "name": "露营"}
    page.press("k")
    page.wait("document.querySelector('#detail h2').innerText === 'Add 露营 to level 1'")


def test_leaves_elsewhere_that_an_edit_names_are_checked_shown_counted_and_undone(page):
    assert "all 3 become examples of camping" in page.text("#detail")
    weather = "dynamic_information.realtime_weather"
    page.press("e")
    page.wait("document.activeElement.matches('.form input')")
    boxes = "[...document.querySelectorAll('.form label')]"
    page.run(f"{boxes}.find((one) => one.innerText.startsWith('Parent')).querySelector('input').value = 'discovery'")
    page.run(f"{boxes}.find((one) => one.innerText.startsWith('Leaves elsewhere')).querySelector('textarea').focus()")
    page.type("no.such")
    page.press("Enter", modifiers=2)
    page.wait("document.querySelector('#status').innerText.includes('no.such')")
    page.run("document.activeElement.select()")
    page.type(f"{weather}\n\nrules_and_policies.travel_policies")
    page.press("Enter", modifiers=2)
    waits(page, 4)
    page.press("k")
    page.wait("document.querySelector('#detail ul')?.innerText.includes('realtime_weather')")
    assert page.text("#detail h2") == "Add camping to discovery"
    page.wait("document.querySelector('#detail > h2:not(:first-child)').innerText === 'discovery'")
    page.run("document.querySelector('#apply').click()")
    page.wait("document.querySelector('#apply-dialog').open")
    notes = page.text("#apply-body")
    assert f"again: {weather}: 2 rows more are annotated again, but none of the evidence shown is there." in notes
    assert "again: rules_and_policies.travel_policies does nothing: no annotated row has a label there." in notes
    page.run("document.querySelector('#apply-dialog').close()")
    page.press("u")
    waits(page, 5)
    page.wait("!document.querySelector('#detail ul')")
    assert page.desk.proposal(ADD)["decided"] is None


def test_leaves_of_a_split_are_shown_and_edited(page):
    page.press("j", "j", "e")
    page.wait("document.querySelectorAll('.form fieldset').length === 2")
    page.run("document.activeElement.select()")
    page.type("now")
    page.press("Enter")
    waits(page, 4)
    decided = page.desk.proposal(SPLIT)["decided"]
    assert [part["name"] for part in decided["parts"]] == ["now", "forecast"]
    assert decided["parts"][0]["examples"] == ["下雨吗"]
    page.press("k")
    page.wait("document.querySelector('#detail h2').innerText.startsWith('Split')")
    assert [page.text(f".box:nth-of-type({at}) strong") for at in (2, 3)] == ["now", "forecast"]
    assert "[object" not in page.text("body")


def test_keys_do_nothing_while_a_person_types_and_can_be_turned_off(page):
    page.press("/")
    page.type("x")
    page.press("a", "r")
    assert page.run("document.querySelector('#search').value").startswith("x")
    assert page.desk.state()["proposals"]["waiting"] == 5
    page.press("Escape", "?")
    page.wait("document.querySelector('#help-dialog').open")
    page.press("a")
    page.run("document.querySelector('#single-keys').click(), document.querySelector('#help-dialog').close()")
    page.press("a")
    time.sleep(0.3)
    assert page.desk.state()["proposals"]["waiting"] == 5
    page.run("document.querySelector('#single-keys').click()")


def test_texts_of_the_log_are_shown_and_never_run(page):
    page.wait("document.querySelector('#detail table')")
    assert HOSTILE in page.text("#detail")
    page.press("3")
    page.wait("document.querySelector('#detail .form')")
    assert HOSTILE in page.text("#list")
    page.press("2")
    page.wait("document.querySelector('[role=treeitem]')")
    page.run(f"[...document.querySelectorAll('[data-node=\"{POI}\"] > .line')][0].click()")
    page.wait("document.querySelector('#detail table')")
    assert HOSTILE in page.text("#detail")
    assert page.run("document.scripts.length") == 1
    assert page.run("document.title") == "Review of w"
    assert page.run("[...document.querySelectorAll('*')].some(node => node.hasAttribute('onload'))") is False


def test_inline_scripts_and_foreign_addresses_are_forbidden_by_the_browser(page):
    page.run("document.body.append(Object.assign(document.createElement('img'), {src: 'http://192.0.2.1/x.png'}))")
    for unsafe in ("document.body.setAttribute('onclick', 'x')", "document.body.innerHTML = '<b>'"):
        assert (
            page.run(f"(() => {{ try {{ {unsafe}; return 'done' }} catch {{ return 'refused' }} }})()") == "refused"
        )
    assert page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in error for error in page.errors)
    page.errors.clear()


def test_the_tree_by_keys_with_rows_neighbours_and_proposals(page):
    page.press("2")
    page.wait("document.activeElement.matches('[role=treeitem]')")
    page.press("j", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowLeft")
    assert page.run("document.activeElement.dataset.node") == "application_interaction"
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.press("/")
    page.type("open_ended_poi")
    page.wait("document.querySelectorAll('[role=treeitem]').length < 12")
    page.press("Enter")
    page.run(f"document.querySelector('[data-node=\"{POI}.open_ended_poi_exploration\"] > .line').click()")
    page.wait("document.querySelector('#detail').innerText.includes('0.982')")  # the closest leaf
    page.press("p")
    page.wait("document.querySelector('#list .row .main')?.innerText.startsWith('Merge')")
    assert page.run("document.querySelectorAll('#list .row').length") == 1


def test_seeds_are_labelled_with_keys_alone(page):
    page.press("3")
    page.wait("document.querySelector('#primary')")
    page.press("e")
    page.type("constrained_poi_search")  # the last part is enough where only one leaf has it
    page.press("Enter")
    page.wait("document.querySelector('#tab-seeds .count').innerText === '2'")
    first = page.desk.find_seeds({})[0]
    assert first["label"]["primary"] == f"{POI}.constrained_poi_search"
    page.wait(f"document.querySelector('#detail h2').innerText === {SEEDS[0]!r}")
    page.press("e", "Tab")
    page.type("充电；电动车")
    page.press("Enter")
    page.wait("document.querySelector('#tab-seeds .count').innerText === '1'")
    assert page.desk.find_seeds({})[1]["label"]["tags"] == ["充电", "电动车"]
    page.press("u")
    page.wait("document.querySelector('#tab-seeds .count').innerText === '2'")


def test_applying_shows_the_difference_first_and_then_the_version(page):
    page.press("a")
    waits(page, 4)
    page.run("document.querySelector('#apply').click()")
    page.wait("document.querySelector('#apply-dialog').open")
    said = page.text("#apply-body")
    assert "Version 1 becomes version 2; 2 of 7 annotated rows will be annotated again." in said
    assert "+ camping added" in said
    page.run("document.querySelector('#apply-now').click()")
    page.wait("document.querySelector('#version').innerText === 'version 2'")
    page.wait("document.querySelector('#detail').innerText.includes('camping added')")
    assert page.run("document.querySelectorAll('#list .row').length") == 2
    page.press("j")
    page.wait("document.querySelector('#detail h2').innerText === 'Version 1'")
    page.run("document.querySelector('#detail .buttons button').click()")
    page.wait("document.querySelector('#ask-dialog').open")
    page.run("document.querySelector('#ask-dialog button').click()")
    page.wait("document.querySelector('#version').innerText === 'version 3'")


def test_a_mistake_in_a_file_is_said_on_the_page(page):
    (page.desk.root / "review" / "decisions.yaml").write_text("- proposal: [\n")
    page.run("window.dispatchEvent(new Event('focus'))")
    page.wait("document.querySelector('#trouble').innerText.includes('decisions.yaml, line 2: not valid YAML')")
    page.run("document.querySelector('#trouble button').click()")
    page.wait("document.querySelector('#ask-dialog').open")
    page.run("document.querySelector('#ask-dialog button').click()")
    page.wait("document.querySelector('#trouble').hidden")


CONTRAST = """
(() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest(':disabled, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color).rgb), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${node.className} ${node.innerText.slice(0, 30)}`);
  }
  return low;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_texts_have_enough_contrast(page, dark):
    page.look(dark=dark)
    page.press("a", "r")
    waits(page, 3)
    for key in "1234":
        page.press(key)
        page.wait("document.querySelector('#detail h2')")
        time.sleep(0.4)
        assert page.run(CONTRAST) == []
    assert (page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") is not dark
    page.look()


def test_everything_that_can_be_used_has_a_name_for_screen_readers(page):
    page.send("Accessibility.enable")
    roles = {"button", "textbox", "searchbox", "combobox", "tab", "option", "treeitem", "listbox", "tree", "tabpanel"}
    seen = set()
    for key in ["1", "e", "2", "3", "4"]:
        if page.run("document.activeElement.matches('input, textarea')"):
            page.press("Escape")
        page.press(key)
        time.sleep(0.5)
        for node in page.send("Accessibility.getFullAXTree")["nodes"]:
            role = node.get("role", {}).get("value")
            if role in roles and not node["ignored"]:
                assert node.get("name", {}).get("value", "").strip(), (key, node)
                seen.add(role)
    assert roles <= seen | {"MenuListPopup"}


def test_on_a_narrow_screen_nothing_is_cut_off(page):
    page.look(width=420, height=800)
    for key in "1234":
        page.press(key)
        time.sleep(0.3)
        wide = (
            "[...document.querySelectorAll('body *')].filter(n => n.getBoundingClientRect().right > innerWidth + 1)"
        )
        assert page.run(f"{wide}.map(n => n.outerHTML.slice(0, 80))") == []
    page.look()


def test_50000_proposals(tab, tmp_path):
    root = make_workspace(tmp_path / "w", PROPOSALS, more=many(50_000))
    tab.errors.clear()
    with served(root) as (address, desk):
        tab.desk = desk
        tab.open(address)
        waits(tab, "50,005")
        tab.wait("document.querySelector('#list .row .main')")
        assert tab.run("document.querySelectorAll('#list .row').length") < 60
        order = desk.find_proposals({"status": "waiting"})
        tab.press("End")
        tab.wait("document.querySelector('.row[aria-selected=true]')?.getAttribute('aria-posinset') === '50005'")
        tab.wait(f"document.querySelector('#detail h2').innerText.includes({desk.proposal(order[-1])['name']!r})")
        tab.press("Home", "a", "a", "a")
        waits(tab, "50,002")
        assert [desk.proposal(key)["status"] for key in order[:4]] == ["accepted"] * 3 + ["waiting"]
        size = (root / "review" / "journal.jsonl").stat().st_size
        tab.press("r")
        waits(tab, "50,001")
        with patch.object(desk.book, "_changed", time.monotonic() + 60):
            assert (root / "review" / "journal.jsonl").stat().st_size - size < 1000
        tab.press("/")
        tab.type("露营 49999")
        tab.wait("document.querySelector('#footer').innerText.startsWith('1 listed')")
        tab.run("document.querySelector('#search').value = ''")
        tab.type(" ")
        tab.wait("document.querySelector('#footer').innerText.startsWith('50,001 listed')")
        tab.run("document.querySelectorAll('#footer button')[1].click()")
        tab.wait("document.querySelector('#ask-dialog').open")
        tab.run("document.querySelector('#ask-dialog button').click()")
        waits(tab, "")
        tab.press("Escape", "u")
        waits(tab, "50,001")
        assert tab.errors == []
    desk = Desk(root)
    assert [desk.proposal(key)["status"] for key in order[:4]] == ["accepted"] * 3 + ["rejected"]
    desk.close()
