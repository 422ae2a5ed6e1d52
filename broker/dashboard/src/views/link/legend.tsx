// SPDX-License-Identifier: Apache-2.0
// What the layers and lines of the plot are.

import { to } from "../../addresses";
import { useColours } from "../../plot/colours";
import { Link } from "../../ui";
import type { Known } from "./use-picture";

export function Legend({ known }: { known: Known }) {
  const colours = useColours();
  return (
    <ul className="legend" aria-label="Legend">
      <li>
        <span className="stroke" /> Capacity
      </li>
      <li>
        <span className="stroke dotted" /> Measured
      </li>
      {known.layers.map(({ key, label, count, holder }) => (
        <li key={key}>
          <span className="swatch" style={{ background: colours.of(known.colours.get(key) ?? "muted") }} />
          {holder ? <Link to={to.transfer(holder.id)}>{label}</Link> : label}
          {!holder && key !== "others" && <span className="muted">({count})</span>}
        </li>
      ))}
    </ul>
  );
}
