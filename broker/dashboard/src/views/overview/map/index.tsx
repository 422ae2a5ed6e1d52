// SPDX-License-Identifier: Apache-2.0
// The network as a map. SVG instead of a canvas, so that each link is an <a>: it takes the focus, screen readers read it, it opens
// in a new tab, and style sheets colour it.
import { type KeyboardEvent, type SyntheticEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import type { Shares } from "../load";
import { cameraOf, moved, whole, zoomed } from "./camera";
import { Controls } from "./controls";
import { gestures, type Movable } from "./gestures";
import { nextOn, wayOf } from "./keys";
import { Dots, Lanes, Names } from "./layers";
import { Legend } from "./legend";
import "./map.css";
import { type MapNetwork, shapeOf } from "./network";
import { placed } from "./place";
import { boxOf, type Point } from "./plane";
import { namesOf, sceneOf } from "./scene";
import { firstStop, placeOf, thingsOf } from "./things";
import { Tip } from "./tip";
import { useSight } from "./use-sight";
import { type Size, useSize } from "./use-size";

export interface MapProps {
  network: MapNetwork;
  shares: Shares;
  /** The instant that is shown; null: now. */
  at: number | null;
  now: number;
  /** Names of hosts that do not answer. */
  down: ReadonlySet<string>;
  /** What of it is seen, as the URL has it. */
  sight: string;
  onSight: (sight: string) => void;
}

export function NetworkMap(props: MapProps) {
  const frame = useRef<HTMLDivElement>(null);
  const size = useSize(frame);
  return (
    <div className="map">
      <div ref={frame} className="map-frame">
        {size && size.width > 0 && <Drawn {...props} size={size} />}
      </div>
      <Legend />
    </div>
  );
}

const KEY_ZOOM = 1.4;
const FULL_VIEW = 1.001;

function Drawn({ network, shares, at, now, down, sight: text, onSight, size }: MapProps & { size: Size }) {
  const hint = useId();
  const area = useRef<SVGSVGElement>(null);
  const shape = shapeOf(network);
  const points = useMemo(() => placed(network), [shape]); // once: not with every answer that says the same
  const box = useMemo(() => boxOf([...points.values()]), [points]);
  const [sight, setSight] = useSight(text, onSight, box);
  const camera = cameraOf(sight, box, size);
  const { scale, origin } = camera;
  const scene = useMemo(
    () => sceneOf(network, points, scale, sight.zoom, size.fontPx),
    [network, points, scale, sight.zoom, size.fontPx],
  );
  const labels = useMemo(
    () => namesOf(network, scene, shares, size.fontPx, { left: -origin.x, top: -origin.y, width: size.width, height: size.height }),
    [network, scene, shares, size, origin.x, origin.y],
  );
  const things = useMemo(() => thingsOf(network, shares, at, now, down), [network, shares, at, now, down]);
  const [pointed, setPointed] = useState<string>();
  const [chosen, setChosen] = useState<string>();
  const stop = chosen !== undefined && things.has(chosen) ? chosen : firstStop(network, shares);

  const onScreen = (key: string): Point | undefined => {
    const place = placeOf(key, scene);
    return place && { x: place.x + origin.x, y: place.y + origin.y };
  };
  const movable = useRef<Movable>(undefined);
  movable.current = {
    zoomed: (factor, around) => setSight((seen) => zoomed(seen, factor, cameraOf(seen, box, size).toPlane(around), box)),
    shifted: (dx, dy) => setSight((seen) => moved(seen, -dx / scale, -dy / scale, box)),
    whole: () => sight.zoom <= FULL_VIEW,
  };
  useEffect(() => (area.current ? gestures(area.current, () => movable.current as Movable) : undefined), []);

  const zoom = (factor: number): void => movable.current?.zoomed(factor, { x: size.width / 2, y: size.height / 2 });
  const focus = (key: string): void => {
    const place = onScreen(key);
    if (place) movable.current?.shifted(beyond(place.x, size.width), beyond(place.y, size.height));
    area.current?.querySelector<SVGElement>(`[data-thing="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const way = wayOf(event.key);
    if (event.key === "+" || event.key === "=") zoom(KEY_ZOOM);
    else if (event.key === "-") zoom(1 / KEY_ZOOM);
    else if (event.key === "0") setSight(() => whole(box));
    else if (way && stop !== undefined) {
      const places = [...things.keys()].flatMap((key): [string, Point][] => [[key, placeOf(key, scene) ?? NOWHERE]]);
      const next = nextOn(way, placeOf(stop, scene) ?? NOWHERE, places);
      if (next !== undefined) focus(next);
    } else return;
    event.preventDefault();
  };
  const onFocus = (event: SyntheticEvent): void => {
    setChosen(thingOf(event));
    setPointed(thingOf(event));
  };

  const shown = pointed === undefined ? undefined : things.get(pointed);
  const shownAt = pointed === undefined ? undefined : onScreen(pointed);
  return (
    <>
      <p id={hint} className="unseen">
        Arrow keys go from link to link, Enter opens one, plus and minus zoom, 0 shows the whole network.
      </p>
      <svg
        ref={area}
        width={size.width}
        height={size.height}
        role="group"
        aria-label="Map of the network"
        aria-describedby={hint}
        onKeyDown={onKeyDown}
        onFocus={onFocus}
        onBlur={() => setPointed(undefined)}
        onPointerOver={(event) => setPointed(thingOf(event))}
        onPointerLeave={() => setPointed(undefined)}
      >
        <g transform={`translate(${origin.x} ${origin.y})`}>
          <Lanes network={network} scene={scene} things={things} stop={stop} shares={shares} />
          <Dots network={network} scene={scene} things={things} stop={stop} down={down} />
          <Names labels={labels} />
        </g>
      </svg>
      {shown && shownAt && <Tip of={shown} at={shownAt} size={size} />}
      <Controls onZoom={zoom} onWhole={() => setSight(() => whole(box))} whole={sight.zoom <= FULL_VIEW} />
    </>
  );
}

const NOWHERE: Point = { x: 0, y: 0 };
const EDGE = 0.08;

/** How far the map has to move so that this lies on the screen, and not at its very edge. */
function beyond(value: number, size: number): number {
  if (value < size * EDGE) return size * EDGE - value;
  return value > size * (1 - EDGE) ? size * (1 - EDGE) - value : 0;
}

const thingOf = (event: SyntheticEvent): string | undefined =>
  event.target instanceof Element ? (event.target.closest("[data-thing]")?.getAttribute("data-thing") ?? undefined) : undefined;
