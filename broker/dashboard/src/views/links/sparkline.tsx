// SPDX-License-Identifier: Apache-2.0
// The share booked of a link in the next hours, as high as a line of text.
import { share } from "../../format/units";

const WIDTH = 96;
const HEIGHT = 20;

interface SparklineProps {
  shares: readonly (number | null)[];
  peak: number | null;
}

export function Sparkline({ shares, peak }: SparklineProps) {
  if (peak === null) return <span className="muted">–</span>;
  return (
    <span className="sparkline" title={`At most ${share(peak)} booked at once in the next 24 h`}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
        <path d={`M0,0H${WIDTH}`} className="sparkline-full" />
        <path d={outline(shares, WIDTH, HEIGHT)} className="sparkline-booked" />
      </svg>
      {share(peak)}
    </span>
  );
}

/** Steps of equal width as the path of an SVG; 1 is at the top. */
export function outline(shares: readonly (number | null)[], width: number, height: number): string {
  const step = width / Math.max(1, shares.length);
  const round = (value: number): number => Math.round(value * 10) / 10;
  let path = "";
  let before: number | null = null;
  shares.forEach((one, index) => {
    const y = one === null ? null : round(height * (1 - Math.min(1, one)));
    if (y === null || before === null) path += y === null ? "" : `M${round(index * step)},${y}`;
    else if (y !== before) path += `V${y}`;
    if (y !== null) path += `H${round((index + 1) * step)}`;
    before = y;
  });
  return path;
}
