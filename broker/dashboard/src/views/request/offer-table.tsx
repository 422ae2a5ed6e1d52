// SPDX-License-Identifier: Apache-2.0
// The offers side by side. The row of the chosen planner is what "Book" books.
import { type ReactNode, useMemo } from "react";
import type { Planner } from "../../api/types";
import { plannerColour, plannerTitle } from "../../format/planners";
import { type Column, Icon, Rate, Share, Table, Tag, Time } from "../../ui";
import type { Change, Form } from "./form";
import { best, type Merit, type Offer } from "./offers";
import { type Network, pathName } from "./use-network";

interface OfferTableProps {
  offers: readonly Offer[];
  form: Form;
  set: (change: Change) => void;
  links: Network["links"];
  planners: readonly Planner[];
}

export function OfferTable({ offers, form, set, links, planners }: OfferTableProps) {
  const columns = useMemo(() => columnsOf({ offers, form, set, links, planners }), [offers, form, set, links, planners]);
  return (
    <Table
      name="offers"
      caption="Offers"
      columns={columns}
      rows={offers}
      rowKey={(offer) => offer.planner}
      current={form.planner}
      tools={<h2>Offers</h2>}
    />
  );
}

function columnsOf({ offers, form, set, links, planners }: OfferTableProps): Column<Offer>[] {
  const found = best(offers);
  const marked = (merit: Merit, word: string, offer: Offer, shown: ReactNode): ReactNode =>
    found[merit].has(offer.planner) ? (
      <strong className="request-best" title={word}>
        <Icon name="good" />
        <span className="unseen">{word}: </span>
        {shown}
      </strong>
    ) : (
      shown
    );
  return [
    {
      key: "planner",
      title: "Planner",
      width: "10rem",
      value: (offer) => offer.planner,
      show: (offer) => (
        <PlannerChoice
          offer={offer}
          about={planners.find(({ name }) => name === offer.planner)?.about}
          chosen={offer.planner === form.planner}
          onChoose={() => set({ planner: offer.planner })}
        />
      ),
    },
    {
      key: "start",
      title: "Start",
      sort: true,
      width: "12.6rem",
      value: (offer) => offer.start,
      show: (offer) => (offer.admitted ? <Time at={offer.start} /> : <Tag tone="bad">Refuses</Tag>),
    },
    {
      key: "finish",
      title: "Finish",
      sort: true,
      width: "14.8rem",
      value: (offer) => offer.finish,
      show: (offer) => marked("finish", "the earliest", offer, <Time at={offer.finish} />),
    },
    {
      key: "changes",
      title: "Changes",
      hint: "How often the rate changes between start and finish",
      sort: true,
      align: "end",
      width: "6.3rem",
      value: (offer) => offer.changes,
      show: (offer) => marked("changes", "the fewest", offer, offer.changes ?? "–"),
    },
    {
      key: "peak_bps",
      title: "Peak rate",
      sort: true,
      align: "end",
      width: "9rem",
      value: (offer) => offer.peakBps,
      show: (offer) => marked("peakBps", "the lowest", offer, <Rate bps={offer.peakBps} />),
    },
    {
      key: "congestion_factor",
      title: "Congestion",
      hint: "The largest share of any of its links that would be booked while it runs",
      sort: true,
      align: "end",
      width: "8.8rem",
      value: (offer) => offer.congestion,
      show: (offer) => marked("congestion", "the least", offer, <Share of={offer.congestion} />),
    },
    {
      key: "path",
      title: "Path",
      value: (offer) => offer.paths.map((path) => path.join(" ")).join("; "),
      show: (offer) => <Paths offer={offer} links={links} />,
    },
  ];
}

interface PlannerChoiceProps {
  offer: Offer;
  about: string | undefined;
  chosen: boolean;
  onChoose: () => void;
}

function PlannerChoice({ offer: { planner, books }, about, chosen, onChoose }: PlannerChoiceProps) {
  return (
    <label className="request-planner" title={about}>
      <input type="radio" name="planner" checked={chosen} disabled={!books} onChange={onChoose} />
      <Swatch colour={plannerColour(planner)} />
      {plannerTitle(planner)}
      {!books && <Tag tone="idle">predicts</Tag>}
    </label>
  );
}

export function Swatch({ colour }: { colour: string }) {
  return <span className="request-swatch" style={{ background: `var(--${colour})` }} />;
}

function Paths({ offer: { paths }, links }: { offer: Offer; links: Network["links"] }) {
  if (paths.length === 0) return "–";
  return (
    <span title={paths.map((path) => path.join(", ")).join("; ")}>{paths.map((path) => pathName(path, links)).join(" + ")}</span>
  );
}
