"""HTML is read and rewritten without changing a byte that is not meant."""

from hypothesis import given
from hypothesis import strategies as st

from archcards.plugin.markup import attributes, elements, plain_text, rewrite, tokens

PIECES = st.lists(
    st.sampled_from(
        [
            "<p>", "</p>", "<br>", "<br />", "a < b", "x &amp; y", "<!-- <p> -->", "</div>", '<a href="a>b">',
            "</a>", "<script>if (a < b) {}</script>", "<style>a>b{}</style>", "<img alt='>'>", "\n", "é", "<", "<!doctype html>",
        ]
    ),
    max_size=30,
)  # fmt: skip


@given(PIECES)
def test_tokens_joined_again_are_the_page(pieces):
    page = "".join(pieces)
    assert rewrite(page, lambda token: token.text) == page


def test_a_token_knows_what_it_stands_in():
    page = "<div><p>one<br>two</p><!-- <b> --><pre><code>three</code></pre></div>four"
    inside = {token.text: token.inside for token in tokens(page) if token.kind == "text"}
    assert inside == {
        "one": ("div", "p"),
        "two": ("div", "p"),
        "three": ("div", "pre", "code"),
        "four": (),
    }


def test_a_script_holds_no_tags():
    found = list(tokens("<script>let a = '<p>';</script><p>"))
    assert [(token.kind, token.name) for token in found] == [
        ("open", "script"), ("raw", ""), ("close", "script"), ("open", "p"),
    ]  # fmt: skip


def test_attributes_are_unescaped_and_the_first_counts():
    assert attributes("""<a href="?a=1&amp;b" title='"' hidden href="no">""") == {
        "href": "?a=1&b",
        "title": '"',
        "hidden": "",
    }


def test_elements_may_nest():
    page = '<div class="x"><div>a</div>b</div><div class="x">c</div>'
    assert [inner for *_, inner in elements(page, '<div class="x">')] == ["<div>a</div>b", "c"]


def test_plain_text_is_what_a_reader_reads():
    assert plain_text("<p>1 &lt;  2<!-- no --><script>x</script></p>") == "1 < 2"
