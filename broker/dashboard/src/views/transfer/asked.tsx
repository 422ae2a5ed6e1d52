// SPDX-License-Identifier: Apache-2.0
// The request as it stands, every field of it, whether it was given or left to the broker.

import { useSession } from "../../api/session";
import type { Transfer } from "../../api/types";
import { Card, Copy, Duration, Facts, Rate, Time, Volume } from "../../ui";
import { LinkName } from "./link-names";

const MODES: Record<string, string> = {
  reserve: "booked only; somebody else moves the data",
  managed: "managed: the agents move the file",
  wrapped: "wrapped: another program moves it, paced from outside",
  observed: "observed: its packets are classed and counted",
};

export function Asked({ transfer: t }: { transfer: Transfer }) {
  const { id } = useSession();
  return (
    <Card title="Request" actions={<Copy text={t.id} label="Copy id" />}>
      <Facts
        items={[
          ["Source", t.source],
          ["Destination", t.destination],
          ["Volume", t.volume_bytes === null ? "none: it holds capacity for a time" : <Volume bytes={t.volume_bytes} />],
          ["Lasts", t.duration_s === null ? null : <Duration s={t.duration_s} />],
          ["Booked, with margin", <Volume bytes={t.booked_bytes} />],
          ["Not before", <Time at={t.not_before} />],
          ["Deadline", t.deadline ? <Time at={t.deadline} /> : "none: as early as it can"],
          ["Highest rate", t.rate_max_bps === null ? "as fast as its path" : <Rate bps={t.rate_max_bps} />],
          ["Lowest rate", t.rate_min_bps === null ? "none" : <Rate bps={t.rate_min_bps} />],
          ["Priority", `${t.priority}${t.best_effort ? ", best effort" : ""}`],
          ["Planner", t.planner],
          ["Mode", MODES[t.mode] ?? t.mode],
          ["Mechanism", t.mechanism ?? "what the host prefers"],
          ["Paths to choose from", t.path ? null : String(t.paths)],
          ["Path asked for", t.path && <AskedPath path={t.path} />],
          ["Several paths at once", t.split ? "yes" : "no"],
          ["Shortest segment", t.shortest_segment_s === null ? "any" : <Duration s={t.shortest_segment_s} />],
          ["Changes of rate", t.most_segments === null ? "any number" : `at most ${t.most_segments - 1}`],
          ["Name", t.label ?? "none"],
          ["Project", t.project ?? "none"],
          ["Submitted by", <span title={t.owner}>{`${t.outlook?.owner_name ?? t.owner}${t.owner === id ? " (you)" : ""}`}</span>],
          ["Submitted", <Time at={t.created} />],
          ["Held until", t.hold_until ? <Time at={t.hold_until} /> : null],
          ["Checksum", t.checksum ? <span className="mono">{t.checksum}</span> : null],
          ["Id", <span className="mono">{t.id}</span>],
        ]}
      />
      {t.payload && <Document title="Payload" of={t.payload} />}
      {t.metadata && <Document title="Metadata" of={t.metadata} />}
    </Card>
  );
}

function AskedPath({ path }: { path: readonly string[] }) {
  return path.map((link, index) => (
    <span key={link}>
      {index > 0 && ", "}
      <LinkName id={link} />
    </span>
  ));
}

/** What somebody wrote, as text and nothing else. */
function Document({ title, of }: { title: string; of: Readonly<Record<string, unknown>> }) {
  const written = Object.entries(of)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const);
  return (
    <div>
      <h3>{title}</h3>
      <Facts items={written} />
    </div>
  );
}
