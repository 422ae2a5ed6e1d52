// SPDX-License-Identifier: Apache-2.0
// How a state looks on the schedule: a colour, and a pattern for those who cannot tell colours apart.
import type { Colours } from "../../plot/colours";

type Hatch = "none" | "rising" | "falling" | "crossed" | "upright" | "dotted";

export interface Sign {
  colour: "accent" | "busy" | "good" | "warn" | "bad" | "idle" | "text";
  /** How strong the area is. */
  fill: number;
  hatch: Hatch;
  dashed?: true;
}

const SIGNS: Record<string, Sign> = {
  HELD: { colour: "warn", fill: 0.06, hatch: "none", dashed: true },
  RESERVED: { colour: "busy", fill: 0.22, hatch: "none" },
  ACTIVE: { colour: "busy", fill: 0.95, hatch: "none" },
  PAUSED: { colour: "warn", fill: 0.12, hatch: "upright" },
  FINISHED: { colour: "good", fill: 0.2, hatch: "rising" },
  FAILED: { colour: "bad", fill: 0.2, hatch: "crossed" },
  CANCELED: { colour: "idle", fill: 0.12, hatch: "falling" },
  EXPIRED: { colour: "idle", fill: 0.06, hatch: "dotted", dashed: true },
};

export const STATES = Object.keys(SIGNS);
export const signOf = (state: string): Sign => SIGNS[state] ?? { colour: "text", fill: 0.2, hatch: "none" };

const TILE = 6;

/** A box in the sign of a state. */
export type Painter = (context: CanvasRenderingContext2D, path: Path2D, state: string) => void;

/** Patterns are made once for each state, in these colours and for a screen of this ratio. */
export function painter(colours: Colours, ratio: number): Painter {
  const patterns = new Map<string, CanvasPattern | null>();
  return (context, path, state) => {
    const sign = signOf(state);
    const colour = colours[sign.colour];
    context.fillStyle = colour;
    context.globalAlpha = sign.fill;
    context.fill(path);
    context.globalAlpha = 1;
    if (sign.hatch !== "none") {
      if (!patterns.has(state)) patterns.set(state, patternOf(context, sign.hatch, colour, ratio));
      const pattern = patterns.get(state);
      if (pattern) {
        context.fillStyle = pattern;
        context.fill(path);
      }
    }
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(sign.dashed ? [3, 2] : []);
    context.stroke(path);
    context.setLineDash([]);
  };
}

function patternOf(context: CanvasRenderingContext2D, hatch: Hatch, colour: string, ratio: number): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(TILE * ratio);
  const pen = tile.getContext("2d");
  if (!pen) return null;
  pen.scale(tile.width / TILE, tile.width / TILE);
  pen.strokeStyle = pen.fillStyle = colour;
  pen.globalAlpha = 0.65;
  draw(pen, hatch);
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix([TILE / tile.width, 0, 0, TILE / tile.width, 0, 0]));
  return pattern;
}

function draw(pen: CanvasRenderingContext2D, hatch: Hatch): void {
  pen.beginPath();
  // Diagonals go over the corners, so that tiles meet without a gap.
  for (const shift of [-TILE, 0, TILE]) {
    if (hatch === "rising" || hatch === "crossed") {
      pen.moveTo(shift, TILE);
      pen.lineTo(shift + TILE, 0);
    }
    if (hatch === "falling" || hatch === "crossed") {
      pen.moveTo(shift, 0);
      pen.lineTo(shift + TILE, TILE);
    }
  }
  if (hatch === "upright") {
    pen.moveTo(TILE / 2, 0);
    pen.lineTo(TILE / 2, TILE);
  }
  if (hatch === "dotted") pen.fillRect(TILE / 2 - 0.75, TILE / 2 - 0.75, 1.5, 1.5);
  pen.stroke();
}
