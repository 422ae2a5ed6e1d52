// SPDX-License-Identifier: Apache-2.0
// The legend of the plot, and what its lines say where the pointer is.
import { stepAt } from "../../plot/align";
import type { Hover } from "../../plot/steps";
import { Rate, Time } from "../../ui";
import { AREA, type Drawn } from "./gamma";
import { Swatch } from "./offer-table";

export function Readout({ plot, hover, path }: { plot: Drawn; hover: Hover | null; path: string }) {
  const index = hover ? stepAt(plot.x, hover.time) : -1;
  return (
    <ul className="request-readout">
      <li className="muted">{hover ? <Time at={hover.time} /> : path ? `Along ${path}` : "Nothing to show yet"}</li>
      {plot.series
        .filter(({ key }) => key !== AREA)
        .map(({ key, label, colour, values }) => {
          const value = index < 0 ? Number.NaN : (values[index] ?? Number.NaN);
          return (
            <li key={key}>
              <Swatch colour={colour} /> {label} {hover && !Number.isNaN(value) && <Rate bps={value} />}
            </li>
          );
        })}
    </ul>
  );
}
