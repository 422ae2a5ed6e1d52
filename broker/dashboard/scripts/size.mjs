// SPDX-License-Identifier: Apache-2.0
// Fails when all script of the build together, gzipped file by file as it is sent, is larger than the budget.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET_BYTES = 200_000;
const folder = new URL("../dist/assets/", import.meta.url);

const sizes = readdirSync(folder)
  .filter((name) => name.endsWith(".js") || name.endsWith(".css"))
  .map((name) => ({ name, bytes: gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length }))
  .sort((a, b) => b.bytes - a.bytes);
const script = sizes.filter(({ name }) => name.endsWith(".js")).reduce((sum, { bytes }) => sum + bytes, 0);

for (const { name, bytes } of sizes) console.log(String(bytes).padStart(8), name);
console.log(`${script} of ${BUDGET_BYTES} bytes of script, gzipped`);
if (script > BUDGET_BYTES) process.exit(1);
