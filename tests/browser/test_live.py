"""The live ledger gives what the command line gives, to the last integer."""

import json
import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from archcards.cli import main
from archcards.ledger import bundled_config, bundled_names

VIEWS = {
    "plain": {},
    "odd": {"context": "131073", "batch": "3", "dtype": "q4_0", "state": "fp32", "source": "77", "reserve": "full"},
    "long, on eight ranks": {"context": "1000000007", "batch": "2", "dtype": "nvfp4", "ranks": "8", "source": "0"},
}
GO = """async (hash) => {
  const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
  if (location.hash !== hash) {
    location.hash = hash;
    await changed;
  }
  return document.querySelector(".ac-live pre code").textContent;
}"""


@pytest.fixture(scope="module")
def live(new_page, address):
    """The page, open and at work."""
    page, wrong = new_page()
    page.goto(f"{address}models/live/")
    page.wait_for_selector(".ac-live--on")
    yield page
    page.context.close()
    assert not wrong


def fragment(**view):
    return "#ledger:" + urlencode(view)


def told(capsys, model, view):
    """What the command says of a view: its record, or its one line of refusal."""
    asked = {"context": "8192", "batch": "1", "dtype": "bf16", "ranks": "1", "reserve": "need", "source": "0", **view}
    asked["source-length"] = asked.pop("source")
    asked["state-dtype"] = asked.pop("state", asked["dtype"])
    status = main(["ledger", str(model), "--json", *(f"--{name}={value}" for name, value in asked.items())])
    printed = capsys.readouterr()
    return json.loads(printed.out) if status == 0 else printed.err.strip()


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_every_bundled_model(live, capsys, view):
    seen = set()
    for name in bundled_names():
        answered = json.loads(live.evaluate(GO, fragment(a=name, **{"source": "0", **view})))
        assert answered["model"] == name
        expected = told(capsys, name, view)
        refused = live.locator(".ac-live__field", has_text="Tensor-parallel ranks").locator(".ac-live__error")
        if isinstance(expected, str):
            assert expected.endswith(refused.inner_text()) and refused.inner_text()
            assert answered["cache"] is None
            continue
        assert refused.inner_text() == ""
        # An encoder's input is not asked for where there is none.
        for part in (expected["cache"], expected["flops"]):
            if not answered["cache"]["source_length"]:
                part["source_length"] = 0
        for part in ("model_type", "parameters", "cache", "flops"):
            assert answered[part] == expected[part], (name, part)
        seen.add(name)
    assert len(seen) > 20


def test_two_models_side_by_side(live):
    both = json.loads(live.evaluate(GO, fragment(a="openai-community/gpt2", b="google/gemma-2-2b")))
    assert [one["model"] for one in both] == ["openai-community/gpt2", "google/gemma-2-2b"]
    assert live.locator(".ac-live thead th").all_inner_texts() == ["openai-community/gpt2", "google/gemma-2-2b"]


def test_a_configuration_of_ones_own(page, address, capsys, tmp_path):
    page.goto(f"{address}models/live/{fragment(a='own', context='5000')}")
    count = page.get_by_role("button", name="Count").first
    area = page.get_by_label("config.json", exact=True).first
    error = page.locator(".ac-live__own .ac-live__error").first
    config = bundled_config("Qwen3-0.6B") | {"num_hidden_layers": 7, "max_window_layers": 7}
    config.pop("layer_types", None)
    path = tmp_path / "config.json"

    area.fill(json.dumps(config | {"hidden_size": -1}))
    count.click()
    expect(error).not_to_be_empty(timeout=120_000)
    path.write_text(json.dumps(config | {"hidden_size": -1}))
    assert told(capsys, path, {}).endswith(error.inner_text())

    path.write_text(json.dumps(config))
    page.get_by_label("A config.json from your disk").first.set_input_files(path)
    expect(error).to_be_empty()
    count.click()
    expect(page.locator(".ac-live__summary")).to_contain_text("config.json:", timeout=60_000)
    answered = json.loads(page.locator(".ac-live pre code").text_content())
    expected = told(capsys, path, {"context": "5000"})
    for part in ("model_type", "parameters", "cache", "flops"):
        assert answered[part] == expected[part], part


def test_two_configurations_are_counted_at_once(page, address, capsys, tmp_path):
    page.goto(f"{address}models/live/{fragment(a='own', b='own')}")
    names = ("openai-community/gpt2", "Qwen3-0.6B")
    areas = page.get_by_label("config.json", exact=True)
    expect(areas).to_have_count(2)
    for name, area in zip(names, areas.all(), strict=True):
        area.fill(json.dumps(bundled_config(name)))
    for count in page.get_by_role("button", name="Count").all():
        count.click()
    # The first answer is a record alone, the second makes it a list.
    expect(page.locator(".ac-live pre code")).to_have_text(re.compile(r"^\["), timeout=120_000)
    answered = json.loads(page.locator(".ac-live pre code").text_content())
    for name, one in zip(names, answered, strict=True):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(bundled_config(name)))
        assert one["parameters"] == told(capsys, path, {})["parameters"], name


def test_loading_can_be_cancelled(new_page, address):
    page, wrong = new_page()
    # Python does not come before it is cancelled, however fast the machine.
    page.route("**/pyodide.asm.wasm", lambda route: None)
    page.goto(f"{address}models/live/{fragment(a='own')}")
    count = page.get_by_role("button", name="Count").first
    cancel = page.get_by_role("button", name="Cancel").first
    with page.expect_request("**/pyodide.asm.wasm"):
        count.press("Enter")
    expect(page.get_by_role("progressbar", name="Loading Python").first).to_be_visible()
    expect(cancel).to_be_focused()
    cancel.press("Enter")
    expect(cancel).to_be_hidden()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(count).to_be_focused()
    expect(page.locator(".ac-live__own .ac-live__error").first).to_be_empty()
    page.context.close()
    # What was cancelled did not come, and nothing else is wrong.
    assert all(re.match("failed: .*/pyodide/", one) for one in wrong), wrong


def test_a_configuration_can_be_dropped(page, address):
    page.goto(f"{address}models/live/{fragment(a='own')}")
    area = page.get_by_label("config.json", exact=True).first
    area.evaluate("""(area) => {
      const given = new DataTransfer();
      given.items.add(new File(['{"model_type": "gpt2"}'], "config.json"));
      area.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }));
    }""")
    expect(area).to_have_value('{"model_type": "gpt2"}')


def test_what_is_copied_is_what_is_shown(new_page, address):
    page, wrong = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.clock.install()
    page.goto(f"{address}models/live/")
    page.get_by_label("Sequences (batch)").fill("3")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # However slow the machine, the answer stays to be seen.
    for button, shown in (
        ("Copy the JSON", page.locator(".ac-live pre code").text_content()),
        ("Copy a link to this view", page.evaluate("location.href")),
    ):
        copy = page.get_by_role("button", name=button)
        copy.press("Enter")
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == shown
        page.clock.run_for(2000)
        expect(copy).to_be_visible()
    page.context.close()
    assert not wrong


def test_a_link_restores_the_view(page, address, new_page):
    page.goto(f"{address}models/live/")
    page.get_by_label("Model", exact=True).select_option("google-t5/t5-small")
    page.get_by_label("Beside it").select_option("own")
    page.get_by_label("config.json", exact=True).last.fill('{"model_type": "llama", "äöü": 1}')
    page.get_by_label("Context, in tokens").fill("12,345")
    page.get_by_label("Tokens of the source").fill("99")
    page.get_by_label("Cache stored as").select_option("fp8")
    page.get_by_role("radio", name="FLOPs of the sequence").check()
    before = page.locator(".ac-live pre code").text_content()
    assert '"context": 12345' in before and '"source_length": 99' in before

    other, wrong = new_page()
    other.goto(page.evaluate("location.href"))
    expect(other.locator(".ac-live pre code")).to_have_text(before)
    expect(other.get_by_label("config.json", exact=True).last).to_have_value('{"model_type": "llama", "äöü": 1}')
    expect(other.get_by_role("radio", name="FLOPs of the sequence")).to_be_checked()
    other.context.close()
    assert not wrong


def test_a_model_s_page_leads_to_its_ledger(page, address):
    page.goto(f"{address}models/mamba-codestral-7b-v0-1/")
    page.get_by_role("link", name="in the live ledger").click()
    expect(page.get_by_label("Model", exact=True)).to_have_value("mistralai/Mamba-Codestral-7B-v0.1")
    expect(page.get_by_label("Beside it")).to_have_value("")


def test_wrong_numbers_are_refused_beside_their_field(live):
    live.evaluate(GO, fragment(a="google/gemma-2b", context="17"))
    context = live.get_by_label("Context, in tokens")
    error = live.locator(".ac-live__field", has_text="Context, in tokens").locator(".ac-live__error")
    for given, came in (("0", "0"), ("many", "'many'"), ("-5", "-5"), ("9" * 14, "9" * 14)):
        context.fill(given)
        assert error.inner_text() == f"context: expected a whole number from 1 to 1000000000000, came {came}"
        expect(context).to_have_attribute("aria-invalid", "true")
    context.fill("1_000_000")
    assert error.inner_text() == "" and context.get_attribute("aria-invalid") is None


def test_the_keyboard_moves_the_context(live):
    live.evaluate(GO, fragment(a="google/gemma-2b", context="4096"))
    live.get_by_label("Context, as a power of two").press("ArrowRight")
    expect(live.get_by_label("Context, in tokens")).to_have_value("8192")
    assert "context" not in live.evaluate("location.hash")  # 8192 is where the widget begins


def test_the_chart_fits_and_is_described(live):
    for width in (320, 900):
        live.set_viewport_size({"width": width, "height": 800})
        live.evaluate(GO, fragment(a="Qwen/Qwen3-8B", b="google/gemma-2-2b", context=f"{width}"))
        drawing = live.locator(".ac-live__drawing svg")
        expect(drawing).to_have_attribute("aria-label", re.compile("cache and state.*Qwen3-8B.*gemma-2-2b"))
        assert drawing.bounding_box()["width"] <= width
        assert live.evaluate("document.documentElement.scrollWidth") <= width


def test_a_site_without_python_says_what_it_lacks(page, address):
    def without(route):
        known = route.fetch().json()
        route.fulfill(json=known | {"runtime": None})

    page.route("**/models.json", without)
    page.goto(f"{address}models/live/{fragment(a='own')}")
    expect(page.locator(".ac-live__remark").first).to_contain_text("built without npm")
    expect(page.get_by_role("button", name="Count").first).to_be_disabled()


def test_without_javascript_the_tables_remain(new_page, address):
    page, wrong = new_page(java_script_enabled=False)
    page.goto(f"{address}models/live/")
    page.get_by_role("link", name="the table of all models").click()
    assert page.locator(".ac-models tbody tr").count() == len(bundled_names())
    page.context.close()
    assert not wrong


def test_webassembly_is_admitted_on_its_pages_only(page, address):
    for path, admitted in (("models/live/", 1), ("models/", 0), ("", 0)):
        # What a page fetches is in before the next one is opened: else it would count as failed.
        page.goto(address + path, wait_until="networkidle")
        policy = page.locator('meta[http-equiv="Content-Security-Policy"]').get_attribute("content")
        assert policy.count("'wasm-unsafe-eval'") == admitted
        assert "'unsafe-eval'" not in policy and "'unsafe-inline'" not in policy
