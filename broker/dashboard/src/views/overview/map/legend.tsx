// SPDX-License-Identifier: Apache-2.0
import { HEATS } from "./heat";

export function Legend() {
  return (
    <ul className="map-legend" aria-label="Colours of links: booked share">
      {Array.from({ length: HEATS }, (_, step) => (
        <li key={step} className={`heat-${step}`}>
          {(step * 100) / HEATS} to {((step + 1) * 100) / HEATS} %
        </li>
      ))}
      <li className="heat-closed">closed</li>
      <li className="map-legend-dot">node with hosts</li>
    </ul>
  );
}
