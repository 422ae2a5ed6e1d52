// SPDX-License-Identifier: Apache-2.0
// The button that books; where it is disabled, the reason.
import type { Problem } from "../../api/problem";
import { useMay } from "../../api/session";
import { plannerTitle } from "../../format/planners";
import { Button } from "../../ui";
import { type Form, missing } from "./form";
import type { Offer } from "./offers";

interface BookingProps {
  form: Form;
  offer: Offer | undefined;
  busy: boolean;
  onBook: () => void;
}

export function Booking({ form, offer, busy, onBook }: BookingProps) {
  const may = useMay();
  const reason = whyNot(form, offer, may("submit"));
  return (
    <div className="request-foot row apart">
      {reason && (
        <span className="muted" id="why-not">
          {reason}
        </span>
      )}
      {may("submit") && (
        <Button
          kind="primary"
          busy={busy}
          disabled={reason !== undefined}
          aria-describedby={reason ? "why-not" : undefined}
          onClick={onBook}
        >
          {form.hold ? "Hold" : "Book"}
          {form.planner && ` with ${plannerTitle(form.planner)}`}
        </Button>
      )}
    </div>
  );
}

function whyNot(form: Form, offer: Offer | undefined, maySubmit: boolean): string | undefined {
  if (!maySubmit) return "To book, sign in with the scope submit.";
  const absent = missing(form);
  if (absent.length > 0) return `Say the ${absent.join(", the ")} first.`;
  if (offer && !offer.admitted) return `${plannerTitle(form.planner)} refuses this.`;
  if (offer && !offer.books) return `${plannerTitle(form.planner)} predicts, and books nothing.`;
  return undefined;
}

/** What the broker says of a field: of the booking that was tried, of the question, or by the chosen planner. */
export function wrongIn(
  booking: Problem | undefined,
  question: Problem | undefined,
  offer: Offer | undefined,
): (field: string) => string | undefined {
  return (field) =>
    booking?.of(field) ??
    question?.of(field) ??
    offer?.refusal?.errors.find((error) => error.field === field || error.field.startsWith(`${field}.`))?.detail;
}
