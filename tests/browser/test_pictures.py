"""Pictures of the key pages, light, dark and on a phone, kept for those who look at them.

They are in .cache/pictures; what can be asserted of a picture is only that it shows the page.
"""

from pathlib import Path

import pytest
from matplotlib.image import imread

PICTURES = Path(__file__).parents[2] / ".cache" / "pictures"
KEY_PAGES = {
    "home": "",
    "chapter": "attention/chunked-prefill/",
    "derivations": "recurrence/delta-rule/",
    "figures": "attention/local-windows/",
    "rotary": "position/rotary/",
    "masks": "attention/masks/",
    "models": "models/",
    "model": "models/qwen3-next-80b-a3b-instruct/",
    "live": "models/live/",
    "compared": "models/compare/",
    "evidence": "evidence/",
    "reference": "api/mechanisms/attention/",
}
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 1600}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 1600}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 1600}, "color_scheme": "light", "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", KEY_PAGES)
def test_a_picture_is_kept(new_examined, address, name, look):
    page, wrong = new_examined(**LOOKS[look])
    page.goto(address + KEY_PAGES[name])
    assert page.evaluate("examine.touch()") == []
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}-{look}.png"
    page.screenshot(path=path)
    page.context.close()
    assert not wrong
    brightness = imread(path)[..., :3].mean(axis=2)
    assert brightness.std() > 0.02, "nothing is drawn"
    assert (brightness.mean() > 0.5) == (look != "dark")
