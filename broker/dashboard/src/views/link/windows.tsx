// SPDX-License-Identifier: Apache-2.0
// The windows of a link: when less of it may be used, and why.
import { useEffect, useState } from "react";
import { at, del, url } from "../../api/client";
import type { Link, Window } from "../../api/types";
import { invalidate, useAction } from "../../api/use";
import { local, seconds } from "../../format/time";
import { useNow } from "../../format/use-now";
import { Button, Card, type Column, Confirm, Duration, Empty, Loading, Rate, Table, Tag, Time, toast } from "../../ui";
import { Effect, type Settled } from "./effect";

interface WindowsProps {
  link: Link;
  /** May windows be removed here? */
  may: boolean;
}

export function Windows({ link, may }: WindowsProps) {
  const [going, setGoing] = useState<Window | undefined>();
  const now = seconds(useNow(10_000));
  const columns: Column<Window>[] = [
    { key: "kind", title: "Kind", sort: true, width: "9rem", value: ({ kind }) => kind },
    {
      key: "when",
      title: "State",
      width: "9rem",
      value: (window) => stateOf(window, now),
      show: (window) => <When of={stateOf(window, now)} />,
    },
    {
      key: "begin",
      title: "From",
      sort: true,
      width: "13rem",
      value: ({ begin }) => begin,
      show: ({ begin }) => <Time at={begin} />,
    },
    { key: "end", title: "To", sort: true, width: "13rem", value: ({ end }) => end, show: ({ end }) => <Time at={end} /> },
    {
      key: "lasting",
      title: "Lasts",
      sort: true,
      align: "end",
      width: "8rem",
      value: lastingOf,
      show: (window) => <Duration s={lastingOf(window)} />,
    },
    {
      key: "bps",
      title: "May be used",
      sort: true,
      align: "end",
      width: "8rem",
      value: ({ bps }) => bps,
      show: ({ bps }) => <Rate bps={bps} />,
    },
    {
      key: "reason",
      title: "Reason",
      value: ({ reason }) => reason,
      show: ({ reason }) => <span title={reason ?? undefined}>{reason ?? "–"}</span>,
    },
  ];
  if (may)
    columns.push({
      key: "remove",
      title: "",
      width: "7rem",
      align: "end",
      value: () => null,
      show: (window) => <RemoveButton window={window} onClick={() => setGoing(window)} />,
    });
  return (
    <Card title="Maintenance windows and outages">
      {link.windows.length === 0 ? (
        <Empty title="No windows">All of the capacity may be used at all times.</Empty>
      ) : (
        <Table
          name={`windows-${link.id}`}
          caption="Windows"
          columns={columns}
          rows={link.windows}
          rowKey={({ id }) => id}
          sort="begin"
          height="20rem"
        />
      )}
      {going && <RemoveWindow link={link} window={going} onClose={() => setGoing(undefined)} />}
    </Card>
  );
}

type When = "past" | "open" | "to come";

const stateOf = ({ begin, end }: Window, now: number): When =>
  seconds(end) <= now ? "past" : seconds(begin) <= now ? "open" : "to come";
const lastingOf = ({ begin, end }: Window): number => seconds(end) - seconds(begin);

function When({ of }: { of: When }) {
  return <Tag tone={of === "open" ? "warn" : of === "past" ? "idle" : "plain"}>{of}</Tag>;
}

function RemoveButton({ window, onClick }: { window: Window; onClick: () => void }) {
  return (
    <Button kind="quiet" aria-label={`Remove the ${window.kind} window of ${local(window.begin)}`} onClick={onClick}>
      Remove
    </Button>
  );
}

function RemoveWindow({ link, window, onClose }: { link: Link; window: Window; onClose: () => void }) {
  const path = at`/v1/links/${link.id}/windows/${window.id}`;
  const preview = useAction(() => del<Settled>(url(path, { preview: true })));
  const remove = useAction(() => del<Settled>(path));
  const [effect, setEffect] = useState<Settled | undefined>();
  const look = preview.run;
  useEffect(() => {
    void look().then(setEffect);
  }, [look]);
  const confirm = async (): Promise<void> => {
    if (!(await remove.run())) return;
    toast("Window removed");
    invalidate("/v1/");
    onClose();
  };
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Remove the ${window.kind} window`}
      verb="Remove window"
      danger
      busy={remove.busy}
      disabled={!effect}
      problem={preview.problem ?? remove.problem}
      onConfirm={() => void confirm()}
    >
      <p>
        From <Time at={window.begin} /> to <Time at={window.end} /> the whole capacity of the link can be booked again, instead of{" "}
        <Rate bps={window.bps} />.{window.reason && <> The window was made for: {window.reason}</>}
      </p>
      {effect ? <Effect of={effect} /> : !preview.problem && <Loading />}
    </Confirm>
  );
}
