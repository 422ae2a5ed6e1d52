// SPDX-License-Identifier: Apache-2.0
// One link: gamma(t) with what is booked and measured, its windows, and the changes that operators make.
import { useCallback, useState } from "react";
import { to, type ViewProps } from "../../addresses";
import { at } from "../../api/client";
import { useMay } from "../../api/session";
import type { Link as NetworkLink } from "../../api/types";
import { useQuery } from "../../api/use";
import { linkName } from "../../format/names";
import { seconds } from "../../format/time";
import { exact } from "../../format/units";
import { useNow } from "../../format/use-now";
import type { Range } from "../../plot/steps";
import { Answer, Button, Card, Facts, Link as PageLink, Rate, Tag, View } from "../../ui";
import { CapacityDialog } from "./capacity-dialog";
import { Chart } from "./chart";
import "./link.css";
import { rounded } from "./range";
import { WindowDialog } from "./window-dialog";
import { Windows } from "./windows";

export default function Link({ params: { id } }: ViewProps<"id">) {
  const link = useQuery<NetworkLink>(at`/v1/links/${id}`);
  return <Answer of={link}>{(found) => <Found key={found.id} link={found} />}</Answer>;
}

const PIXELS = 1_000; // about as many as a plot is wide
const FIRST_HOUR = 3_600;

function Found({ link }: { link: NetworkLink }) {
  const may = useMay()("operate");
  const [window, setWindow] = useState<Range | undefined>();
  const [capacity, setCapacity] = useState(false);
  const now = seconds(useNow(30_000));
  const onPick = useCallback(
    ([from, end]: Range, shown: Range) => setWindow(rounded([from, end], (shown[1] - shown[0]) / PIXELS)),
    [],
  );
  const onNew = (): void => setWindow(rounded([now + FIRST_HOUR, now + 2 * FIRST_HOUR], 75));
  const closed = link.windows.find(({ begin, end }) => seconds(begin) <= now && now < seconds(end));
  const actions = may && (
    <>
      <Button onClick={() => setCapacity(true)}>Change capacity</Button>
      <Button kind="primary" onClick={onNew}>
        New window
      </Button>
    </>
  );
  return (
    <View title={linkName(link)} lead={closed && <Tag tone="warn">{closed.kind}</Tag>} actions={actions}>
      <Card>
        <About link={link} />
      </Card>
      <Chart link={link} onPick={may ? onPick : undefined} />
      <Windows link={link} may={may} />
      {window && <WindowDialog link={link} range={window} onClose={() => setWindow(undefined)} />}
      {capacity && <CapacityDialog link={link} onClose={() => setCapacity(false)} />}
    </View>
  );
}

function About({ link }: { link: NetworkLink }) {
  return (
    <Facts
      items={[
        ["Id", <span className="mono">{link.id}</span>],
        [link.mtu_bytes ? "Line rate" : "Capacity", <Rate bps={link.capacity_bps} />],
        [
          "MTU",
          link.mtu_bytes && (
            <span title="Frames of this size; the plot shows what of the line rate payload may use">
              {exact(link.mtu_bytes)} bytes
            </span>
          ),
        ],
        ["Rates are multiples of", link.channel_bps && <Rate bps={link.channel_bps} />],
        ["Host", link.host && <PageLink to={to.host(link.host)}>{link.host}</PageLink>],
        ["Way back", link.reverse && <PageLink to={to.link(link.reverse)}>{`${link.target} → ${link.source}`}</PageLink>],
        ["Metric", link.metric === null ? null : exact(link.metric)],
      ]}
    />
  );
}
