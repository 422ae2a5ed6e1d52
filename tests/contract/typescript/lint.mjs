// SPDX-License-Identifier: Apache-2.0
// node lint.mjs CONTRACT RULES: Redocly's linter; every finding counts.
import { formatProblems, lint, loadConfig } from "@redocly/openapi-core";

const [contract, rules] = process.argv.slice(2);
const problems = await lint({ ref: contract, config: await loadConfig({ configPath: rules }) });
formatProblems(problems, { totals: { errors: problems.length, warnings: 0, ignored: 0 }, maxProblems: 50 });
process.exitCode = problems.length ? 1 : 0;
