// SPDX-License-Identifier: Apache-2.0
import type { Described } from "./describe";
import type { Point } from "./plane";

interface TipProps {
  of: Described;
  at: Point;
  size: { width: number; height: number };
}

/** Beside what it names, on the side with more room. Readers of the screen have the same words as the name of the link. */
export function Tip({ of, at, size }: TipProps) {
  const [left, above] = [at.x > size.width / 2, at.y > size.height / 2];
  const shift = `${left ? "calc(-100% - 0.8rem)" : "0.8rem"} ${above ? "calc(-100% - 0.8rem)" : "0.8rem"}`;
  return (
    <div className="map-tip" aria-hidden="true" style={{ left: at.x, top: at.y, translate: shift }}>
      <strong>{of.title}</strong>
      {of.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
