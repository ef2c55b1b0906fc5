"""The policy admits what a page has, by hash, and nothing else."""

import base64
import hashlib
import re

from archcards.plugin.policy import Policy, StyleSheet

PAGE = '<head><meta charset="utf-8"><script>go()</script><script type="application/json">{}</script></head>'


def filled(page, *others, **options):
    policy = Policy()
    placed = [policy.place(one) for one in (page, *others)]
    return policy.fill(placed[0], **options)


def policy(page, *others):
    return re.search(r'<meta charset="utf-8"><meta http-equiv="[^"]*" content="([^"]*)">', filled(page, *others))[1]


def test_each_inline_script_is_named_by_its_hash():
    digest = base64.b64encode(hashlib.sha256(b"go()").digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy(PAGE)
    assert policy(PAGE).count("sha256") == 1  # data are not run
    assert policy(PAGE) != policy(PAGE.replace("go()", "go(1)"))


def test_a_page_admits_what_any_page_has_whatever_their_order():
    other = PAGE.replace("go()", "<!--policy-->")
    assert policy(PAGE, other) == policy(other, PAGE) == policy(PAGE, other, PAGE)
    assert policy(PAGE, other).count("sha256") == 2
    assert "<script><!--policy--></script>" in filled(other)


def test_nothing_unsafe_and_nobody_else():
    assert "unsafe" not in policy(PAGE) and "http" not in policy(PAGE)
    assert policy(PAGE).startswith("default-src 'none'")


def test_webassembly_is_admitted_where_asked_and_nothing_else_with_it():
    admitted = filled(PAGE, webassembly=True)
    assert "script-src 'self' 'wasm-unsafe-eval' 'sha256-" in admitted
    assert admitted.replace("'wasm-unsafe-eval' ", "") == filled(PAGE)


def test_styles_become_classes():
    sheet = StyleSheet()
    page = sheet.without_styles(
        '<mtd style="text-align: right;padding:0"></mtd><svg viewBox="0 0" class="a" style="padding:0;"></svg>'
        '<p>style="kept"</p><path style="text-align:right; padding: 0"/>'
    )
    assert page.count(" style=") == 0 and 'viewBox="0 0"' in page and '<p>style="kept"</p>' in page
    first, second, third = re.findall(r"s-[0-9a-f]{8}", page)
    assert first == third != second
    assert f'<svg viewBox="0 0" class="a {second}">' in page
    assert f".{first}{{text-align: right; padding: 0}}\n" in sheet.css()
    assert f".{second}{{padding: 0}}\n" in sheet.css()
