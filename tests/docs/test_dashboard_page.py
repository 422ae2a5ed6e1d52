# SPDX-License-Identifier: Apache-2.0
"""The dashboard's README is true: what its recipes and its map name is there, and their code is type-checked by `make check`."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "broker" / "dashboard"
PAGE = (DASHBOARD / "README.md").read_text()
RECIPES = dict(re.findall(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
SCRIPTS = json.loads((DASHBOARD / "package.json").read_text())["scripts"]


@pytest.mark.parametrize("recipe", ["Add a column", "Add a view"])
def test_a_recipe_names_files_that_are_there_and_has_code(recipe: str) -> None:
    text, code = RECIPES[recipe].split("```tsx\n")[:2]
    assert re.match(r"// src/[\w/-]+\.tsx\n", code), "scripts/recipes.mjs takes blocks that begin with the path of a file"
    named = re.findall(r"`((?:src|tests|broker)/[\w./-]+)`", text)
    assert named
    for name in named:
        pattern = re.sub(r"NAME|LIST", "*", name)
        assert list((DASHBOARD if name.startswith("src/") else ROOT).glob(pattern)), f"{recipe}: there is no {name}"


def test_recipes_are_compiled_with_the_sources() -> None:
    assert SCRIPTS["check"] == "node scripts/recipes.mjs && tsc --noEmit"
    compiler = json.loads((DASHBOARD / "tsconfig.json").read_text())
    assert "node_modules/recipes" in compiler["include"] and "node_modules/recipes" in compiler["compilerOptions"]["rootDirs"]
    assert re.search(r"^web: .*?dashboard\.py run check$", (ROOT / "Makefile").read_text(), re.M | re.S)


def test_its_commands_are_scripts() -> None:
    asked = set(re.findall(r"npm run ([a-z]+)", PAGE))
    assert {"check", "lint", "format"} <= asked <= SCRIPTS.keys()


def test_its_map_names_what_is_there() -> None:
    rooms = re.findall(r"^\| `(src/[\w/.-]+)`", PAGE, re.M)
    assert rooms
    for room in rooms:
        assert list(DASHBOARD.glob(room.replace("NAME", "*"))), f"there is no {room}"
