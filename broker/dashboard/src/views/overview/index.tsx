// SPDX-License-Identifier: Apache-2.0
// The overview: what operators keep open all day, and what a wall display shows (?wall=1).
import { useCallback, useMemo } from "react";
import type { Host, Link, Schemas } from "../../api/types";
import { useQuery } from "../../api/use";
import { iso } from "../../format/time";
import { useNow } from "../../format/use-now";
import { Answer, View } from "../../ui";
import { flag, maybe, text, useUrlState } from "../../url-state";
import { Asked } from "./asked";
import { concernsOf, unlisted } from "./attention";
import { AttentionList } from "./attention-list";
import { Busiest } from "./busiest";
import { ByState } from "./by-state";
import { Figures } from "./figures";
import { instantOf, stopName, stopOf } from "./load";
import { MapCard } from "./map-card";
import "./overview.css";
import { useLoad } from "./use-load";
import { WallSwitch } from "./wall-switch";

const STATE = { at: maybe(), sight: text(), wall: flag() };

const TICK_MS = 10_000;
const REFUSALS_MS = 15_000; // a refusal makes no event, nor does an agent that falls silent
const MINUTE_S = 60;
const DAY_S = 86_400;

export default function Overview() {
  const [state, setState] = useUrlState(STATE);
  const now = useNow(TICK_MS).getTime() / 1000;
  const overview = useQuery<Schemas["Overview"]>("/v1/overview", { everyMs: REFUSALS_MS });
  const links = useQuery<Link[]>("/v1/links");
  const topology = useQuery<Schemas["Topology"]>("/v1/topology");
  const hosts = useQuery<Host[]>("/v1/hosts", { everyMs: REFUSALS_MS });
  const stop = stopOf(state.at, now);
  const load = useLoad(stop, now);
  const setStop = useCallback((next: number) => setState({ at: instantOf(next, Date.now() / 1000) }), [setState]);
  const setSight = useCallback((sight: string) => setState({ sight }), [setState]);
  const since = iso(Math.floor(now / MINUTE_S) * MINUTE_S - DAY_S);
  const { nowShares, day } = load;
  const concerns = useMemo(
    () =>
      concernsOf({
        endangered: overview.data?.promises.endangered ?? [],
        links: links.data ?? [],
        shares: nowShares,
        day,
        hosts: hosts.data ?? [],
        now,
      }),
    [overview.data, links.data, nowShares, day, hosts.data, now],
  );
  return (
    <View title="Overview" actions={<WallSwitch on={state.wall} onChange={(wall) => setState({ wall }, { push: true })} />}>
      <Answer of={overview}>
        {(found) => (
          <div className={state.wall ? "overview wall" : "overview"}>
            <Figures overview={found} since={since} />
            <MapCard
              links={links}
              topology={topology}
              hosts={hosts.data}
              load={load}
              stop={stop}
              onStop={setStop}
              now={now}
              sight={state.sight}
              onSight={setSight}
            />
            <AttentionList concerns={concerns} now={now} more={unlisted(found.promises)} />
            <div className="overview-more">
              <Asked of={found.decisions} />
              <ByState of={found.transfers} since={since} />
              <Busiest
                links={links.data ?? []}
                shares={load.shares}
                instant={instantOf(stop, now) ?? now}
                when={stopName(stop, now)}
              />
            </div>
          </div>
        )}
      </Answer>
    </View>
  );
}
