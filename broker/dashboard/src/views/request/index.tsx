// SPDX-License-Identifier: Apache-2.0
// Request and what-if: a form, what several planners would answer to it, and gamma(t) beneath. All of it is in the URL.
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { to } from "../../addresses";
import type { Planner } from "../../api/types";
import { invalidate, type Query, useQuery } from "../../api/use";
import { transferName } from "../../format/names";
import { prose } from "../../format/prose";
import { navigate } from "../../router";
import { Card, Copy, Empty, Failed, Loading, Refusal, toast, View } from "../../ui";
import { list, useUrlState } from "../../url-state";
import { Booking, wrongIn } from "./booking";
import { bodyOf, type Change, complete, FORM, missing, questionOf } from "./form";
import { GammaPlot } from "./gamma-plot";
import { OfferTable } from "./offer-table";
import { type Offer, refusals } from "./offers";
import { RefusalList } from "./refusal-list";
import { RequestForm } from "./request-form";
import "./request.css";
import { useBooking } from "./use-booking";
import { useNetwork } from "./use-network";
import { useQuotes } from "./use-quotes";

const PLOT = { along: list() };
const NO_OFFERS: readonly Offer[] = [];
const NO_PLANNERS: readonly Planner[] = [];

export default function Request() {
  const [written, write] = useUrlState(FORM);
  const [{ along }, setPlot] = useUrlState(PLOT);
  const [draft, setDraft] = useState<Change | undefined>(undefined);
  const registry = useQuery<Planner[]>("/v1/planners");
  const planners = registry.data ?? NO_PLANNERS;
  const form = useMemo(() => complete({ ...written, ...draft }, planners), [written, draft, planners]);
  const network = useNetwork();
  const quotes = useQuotes(registry.data && questionOf(form));
  const booking = useBooking();
  const offers = quotes.offers ?? NO_OFFERS;
  const chosen = quotes.outdated ? undefined : offers.find((offer) => offer.planner === form.planner);
  const { reset } = booking;
  const set = useCallback(
    (change: Change) => {
      reset();
      write(change);
    },
    [write, reset],
  );
  const book = async (): Promise<void> => {
    const body = bodyOf(form);
    const transfer = body && (await booking.run(body));
    if (!transfer) return;
    invalidate("/v1/transfers");
    toast(`${form.hold ? "Held" : "Booked"}: ${transferName(transfer)}`);
    navigate(to.transfer(transfer.id));
  };
  const wrong = wrongIn(booking.problem, quotes.problem, chosen);
  return (
    <View title="Request" actions={<Copy text={window.location.href} label="Copy link" />}>
      <div className="request">
        <RequestForm form={form} set={set} wrong={(field) => said(wrong(field))} network={network} planners={planners}>
          <Refusal problem={booking.problem} />
          <Booking form={form} offer={chosen} busy={booking.busy} onBook={() => void book()} />
        </RequestForm>
        <div className="stack">
          <Offered planners={registry} quotes={quotes} waitsFor={missing(form)}>
            <div className="answer stack" aria-busy={quotes.outdated || undefined}>
              {quotes.outdated && <div className="answer-waits" role="status" aria-label="Asking the planners" />}
              <Card>
                <OfferTable offers={offers} form={form} set={set} links={network.links} planners={planners} />
                <RefusalList refused={refusals(offers)} set={set} links={network.links} />
              </Card>
              <GammaPlot
                form={form}
                set={set}
                offers={offers}
                links={network.links}
                along={along}
                onAlong={(links) => setPlot({ along: links })}
                onDraft={setDraft}
              />
            </div>
          </Offered>
        </div>
      </div>
    </View>
  );
}

const said = (detail: string | undefined): string | undefined => detail && prose(detail);

interface OfferedProps {
  planners: Query<Planner[]>;
  quotes: ReturnType<typeof useQuotes>;
  waitsFor: readonly string[];
  children: ReactNode;
}

/** What stands where there are no offers to show. */
function Offered({ planners, quotes, waitsFor, children }: OfferedProps) {
  if (planners.problem && !planners.data) return <Failed problem={planners.problem} onRetry={planners.reload} />;
  if (waitsFor.length > 0) return <Empty title="Offers come as you write">{`Still missing: ${waitsFor.join(", ")}.`}</Empty>;
  if (quotes.problem && !quotes.offers)
    return quotes.problem.status === 422 ? (
      <Refusal problem={quotes.problem} />
    ) : (
      <Failed problem={quotes.problem} onRetry={quotes.reload} />
    );
  if (!quotes.offers) return <Loading label="Asking the planners" />;
  return (
    <>
      <Refusal problem={quotes.problem} />
      {children}
    </>
  );
}
