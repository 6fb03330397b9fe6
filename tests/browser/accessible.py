"""Whether a page can be used without seeing it, or without a mouse, as far as axe-core can tell."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["violations"]


def violations(page: Page, *selectors: str) -> list[str]:
    """What axe-core finds wrong, one line each: rule, place, what is there.

    Args:
        page: that has been loaded.
        selectors: the parts of the page that are ours; all of it without them. A selector that
            finds nothing is an error: it would hide everything.
    """
    for selector in selectors:
        assert page.locator(selector).count(), f"no {selector} on this page"
    context: Any = {"include": [[one] for one in selectors]} if selectors else None
    found = Axe().run(page, context=context).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {' '.join(map(str, node['target']))}: {node['html'][:160]}"
        for one in found
        for node in one["nodes"]
    ]
