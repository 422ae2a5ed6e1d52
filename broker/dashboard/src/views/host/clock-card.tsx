// SPDX-License-Identifier: Apache-2.0
// How well a host knows the broker's time.
import type { Host } from "../../api/types";
import { Card, Empty, Facts, Tag, Time } from "../../ui";
import { offset, size } from "../hosts/words";

export function ClockCard({ clock }: { clock: Host["clock"] }) {
  return (
    <Card title="Clock">
      {clock === null ? (
        <Empty title="It has not said">Its agent measures its offset to the broker's clock with its first calls.</Empty>
      ) : (
        <Said clock={clock} />
      )}
    </Card>
  );
}

function Said({ clock }: { clock: NonNullable<Host["clock"]> }) {
  return (
    <>
      <div>
        {clock.good ? (
          <Tag tone="good">Good enough to start by the clock alone</Tag>
        ) : (
          <Tag tone="warn">Not good enough to start by the clock alone</Tag>
        )}
        {clock.reason && <p className="muted">{clock.reason}</p>}
      </div>
      <Facts
        items={[
          ["Offset to the broker", offset(clock.offset_us)],
          ["Off by at most", size(clock.error_us)],
          ["Steered by NTP or PTP", clock.synchronised === null ? "not said" : clock.synchronised ? "yes" : "no"],
          ["By its kernel's estimate off by", clock.adjtimex_error_us === null ? null : size(clock.adjtimex_error_us)],
          ["Steps of the broker's clock seen", clock.steps],
          ["Last step", clock.last_step_us === null ? null : offset(clock.last_step_us)],
          ["Said", <Time at={clock.at} relative />],
        ]}
      />
    </>
  );
}
