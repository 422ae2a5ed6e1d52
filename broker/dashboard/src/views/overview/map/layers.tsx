// SPDX-License-Identifier: Apache-2.0
// What is drawn, from the ground up. Each layer is drawn again only when something in it is another.
import { memo } from "react";
import { to } from "../../../addresses";
import { Link } from "../../../ui";
import { listOf } from "../lists";
import type { Shares } from "../load";
import { sentence } from "./describe";
import { heatOf } from "./heat";
import type { Label } from "./labels";
import type { MapNetwork } from "./network";
import type { Scene } from "./scene";
import type { Things } from "./things";

interface LayerProps {
  network: MapNetwork;
  scene: Scene;
  things: Things;
  /** Key of the one thing where the Tab key stops. */
  stop: string | undefined;
}

const entry = (key: string, { things, stop }: LayerProps) => ({
  "data-thing": key,
  tabIndex: key === stop ? 0 : -1,
  "aria-label": sentence(things.get(key) ?? { title: key, lines: [] }),
});

export const Lanes = memo(function Lanes({ shares, ...layer }: LayerProps & { shares: Shares }) {
  return layer.network.links.map(({ id }) => (
    <Link key={id} to={to.link(id)} className={`lane ${heatOf(shares.get(id))}`} {...entry(`link ${id}`, layer)}>
      <path d={layer.scene.shapes.get(id)?.path} />
    </Link>
  ));
});

export const Dots = memo(function Dots({ down, ...layer }: LayerProps & { down: ReadonlySet<string> }) {
  const { network, scene } = layer;
  return network.nodes.map(({ id, hosts }) => (
    <Link key={id} to={listOf.atNode(id)} className={dotClass(hosts, down)} {...entry(`node ${id}`, layer)}>
      <circle cx={scene.dots.get(id)?.x} cy={scene.dots.get(id)?.y} r={scene.radius} />
    </Link>
  ));
});

function dotClass(hosts: readonly string[], down: ReadonlySet<string>): string {
  if (hosts.length === 0) return "dot";
  return hosts.some((host) => down.has(host)) ? "dot hosts trouble" : "dot hosts";
}

/** Links and nodes have their names for readers of the screen already. */
export const Names = memo(function Names({ labels }: { labels: readonly Label[] }) {
  return (
    <g className="map-names" aria-hidden="true">
      {labels.map((label) => (
        <text key={label.key} x={label.x} y={label.y} className={label.key.startsWith("link ") ? "hot" : undefined}>
          {label.text}
        </text>
      ))}
    </g>
  );
});
