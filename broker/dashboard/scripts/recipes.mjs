// SPDX-License-Identifier: Apache-2.0
// Writes the recipes of README.md, its ```tsx blocks that begin with the path of a file, where `npm run check` finds them: tsconfig.json
// lays that folder over src, so each recipe is compiled as if it stood where it says.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const folder = new URL("../node_modules/recipes/", import.meta.url);
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const recipes = [...readme.matchAll(/^```tsx\n\/\/ src\/(\S+)\n(.*?)^```/gms)];
if (recipes.length === 0) throw new Error("README.md has no recipe");

rmSync(folder, { recursive: true, force: true });
for (const [, path, code] of recipes) {
  const file = new URL(path, folder);
  mkdirSync(dirname(file.pathname), { recursive: true });
  writeFileSync(file, code);
}
