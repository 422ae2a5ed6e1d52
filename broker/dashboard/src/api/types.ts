// SPDX-License-Identifier: Apache-2.0
// Short names for the documents of the contract. schema.d.ts is generated: `npm run types`.
import type { components } from "./schema";

export type Schemas = components["schemas"];

export type Transfer = Schemas["Transfer"];
export type TransferState = Schemas["State"];
export type TransferPreview = Schemas["TransferPreview"];
export type Moved = Schemas["Moved"];
export type TransferRequest = Schemas["TransferRequest"];
export type WaitingReason = Schemas["WaitingReason"];
export type Plan = Schemas["Plan"];
export type Segment = Schemas["Segment"];
export type Planner = Schemas["Planner"];
export type Quote = Schemas["Quote"];
export type Link = Schemas["Link"];
export type Window = Schemas["Window"];
export type Calendar = Schemas["Calendar"];
export type CalendarStep = Schemas["CalendarStep"];
export type Outcome = Schemas["Outcome"];
export type Host = Schemas["Host"];
export type Job = Schemas["Job"];
export type Token = Schemas["TokenInUse"];
export type NewToken = Schemas["NewToken"];
export type BrokerEvent = Schemas["Event"];

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
