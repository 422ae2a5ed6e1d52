// SPDX-License-Identifier: Apache-2.0
// What the colours and hatches mean, with a switch for each state.
import { useCallback } from "react";
import { Canvas, type Surface } from "../../plot/canvas";
import { stateName } from "../../ui";
import { painter, STATES } from "./signs";

interface LegendProps {
  counts: ReadonlyMap<string, number>;
  hidden: readonly string[];
  onHide: (hidden: readonly string[]) => void;
}

export function Legend({ counts, hidden, onHide }: LegendProps) {
  return (
    <fieldset className="schedule-legend">
      <legend className="unseen">States that are shown</legend>
      {STATES.map((state) => (
        <label key={state}>
          <input
            type="checkbox"
            checked={!hidden.includes(state)}
            onChange={(event) => onHide(event.target.checked ? hidden.filter((one) => one !== state) : [...hidden, state])}
          />
          <Swatch state={state} />
          {state === "PAUSED" ? "Paused" : stateName(state)}
          <span className="muted">{counts.get(state) ?? 0}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Swatch({ state }: { state: string }) {
  const draw = useCallback(
    (context: CanvasRenderingContext2D, { width, height, colours, ratio }: Surface) => {
      const path = new Path2D();
      path.rect(0.5, 0.5, width - 1, height - 1);
      painter(colours, ratio)(context, path, state);
    },
    [state],
  );
  return (
    <span className="schedule-swatch" aria-hidden="true">
      <Canvas label="" height="100%" draw={draw} />
    </span>
  );
}
