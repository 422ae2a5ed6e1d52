// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "react";
import { to } from "../../addresses";
import type { Host, Link, Schemas } from "../../api/types";
import type { Query } from "../../api/use";
import { Answer, ButtonLink, Card, Empty, Loading } from "../../ui";
import { instantOf } from "./load";
import { NetworkMap } from "./map";
import { networkOf } from "./map/network";
import { TimeSlider } from "./time-slider";
import type { Loads } from "./use-load";

interface MapCardProps {
  links: Query<Link[]>;
  topology: Query<Schemas["Topology"]>;
  hosts: readonly Host[] | undefined;
  load: Loads;
  stop: number;
  onStop: (stop: number) => void;
  now: number;
  sight: string;
  onSight: (sight: string) => void;
}

const NOTHING_YET = (
  <Empty title="No network yet" action={<ButtonLink to={to.links()}>Links</ButtonLink>}>
    Links show here as a map as soon as there are any.
  </Empty>
);

export function MapCard({ links, topology, hosts, load, stop, onStop, now, sight, onSight }: MapCardProps) {
  const network = useMemo(() => links.data && networkOf(links.data, topology.data?.nodes ?? []), [links.data, topology.data]);
  const down = useMemo(
    () => new Set(hosts?.filter((host) => host.state === "down" || host.state === "stopped").map((host) => host.name)),
    [hosts],
  );
  // Without their places nodes would stand elsewhere for a moment.
  const ready = topology.data !== undefined || topology.problem !== undefined;
  return (
    <div className="overview-map">
      <Card title="Booked share of links">
        <Answer of={links} empty={() => network?.nodes.length === 0 && NOTHING_YET}>
          {() =>
            network && ready ? (
              <>
                <Answer of={load.query}>{() => <TimeSlider stop={stop} onStop={onStop} now={now} />}</Answer>
                <NetworkMap
                  network={network}
                  shares={load.shares}
                  at={instantOf(stop, now)}
                  now={now}
                  down={down}
                  sight={sight}
                  onSight={onSight}
                />
              </>
            ) : (
              <Loading />
            )
          }
        </Answer>
      </Card>
    </div>
  );
}
