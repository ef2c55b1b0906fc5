"""Each fault in a site of its own: no fault is found only because there is another."""


def test_a_site_with_one_fault_is_not_published(new_book, fault):
    book = new_book().put(fault)
    built = book.run("mkdocs", "build", "-q")
    assert built.returncode != 0
    assert book.told(built.stderr) == book.expected[fault.name]
    assert book.published() == book.before
