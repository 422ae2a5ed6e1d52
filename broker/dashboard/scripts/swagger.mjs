// SPDX-License-Identifier: Apache-2.0
// Swagger UI for /docs, beside the page in dist/: the broker loads nothing from other hosts.
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const target = fileURLToPath(new URL("../dist/swagger", import.meta.url));
const source = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));

mkdirSync(target, { recursive: true });
for (const name of ["swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css"]) {
  copyFileSync(join(source, name), join(target, name));
}
