// SPDX-License-Identifier: Apache-2.0
// Which line is which: a sample of each, and its name.
import type { Series } from "../../plot/steps";

export function Legend({ series }: { series: readonly Series[] }) {
  return (
    <ul className="legend" aria-label="Lines">
      {series.map(({ key, label, colour, dash, fill }) => (
        <li key={key}>
          <span
            aria-hidden="true"
            className={`legend-line ${fill ? "filled" : ""}`}
            style={{ borderTopColor: `var(--${colour})`, borderTopStyle: dash ? "dashed" : "solid" }}
          />
          {label}
        </li>
      ))}
    </ul>
  );
}
