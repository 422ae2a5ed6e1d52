// SPDX-License-Identifier: Apache-2.0
// Short names for the documents of the contract. schema.d.ts is generated: `npm run types`.
import type { components } from "./schema";

export type Schemas = components["schemas"];

export type Transfer = Schemas["TransferOut"];
export type TransferState = Schemas["State"];
export type TransferPreview = Schemas["TransferPreview"];
export type Moved = Schemas["MovedOut"];
export type TransferRequest = Schemas["TransferRequest"];
export type WaitingReason = Schemas["WaitingReason"];
export type Plan = Schemas["PlanOut"];
export type Segment = Schemas["SegmentOut"];
export type Quote = Schemas["QuoteOut"];
export type Link = Schemas["LinkOut"];
export type Window = Schemas["WindowOut"];
export type Calendar = Schemas["CalendarOut"];
export type CalendarStep = Schemas["CalendarStep"];
export type Outcome = Schemas["OutcomeOut"];
export type Host = Schemas["HostOut"];
export type Job = Schemas["JobOut"];
export type Token = Schemas["TokenInUse"];
export type NewToken = Schemas["TokenOut"];
export type BrokerEvent = Schemas["EventOut"];

/** What every list with a cursor answers. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** What a refusal offers instead: members of problem+json, which the contract leaves open. */
export interface CounterOffer {
  kind: string;
  finish?: string;
  deadline?: string;
  volume_bytes?: number;
  rate_max_bps?: number;
  rate_min_bps?: number | null;
  duration_s?: number;
}
