// SPDX-License-Identifier: Apache-2.0
// The request form: its state in the URL, and the bodies that it makes for POST /v1/transfers and POST /v1/quotes.
import type { Planner, Schemas } from "../../api/types";
import { type Codec, flag, list, maybe, number, oneOf, type StateOf, text } from "../../url-state";
import type { Network } from "./use-network";

export type TransferBody = Schemas["TransferRequest"];

const maybeText = (): Codec<string | null> => ({
  fallback: null,
  read: ([first]) => first || undefined,
  write: (value) => (value ? [value] : []),
});

/** An instant in RFC 3339. Anything else is ignored. */
const instant = (): Codec<string | null> => ({
  ...maybeText(),
  read: ([first]) => (first && !Number.isNaN(Date.parse(first)) ? first : undefined),
});

/** A list, or null where nothing was chosen. An emptied list is `none` in the URL. */
const chosen = (): Codec<readonly string[] | null> => ({
  fallback: null,
  read: (texts) => texts.filter((one) => one !== "none"),
  write: (value) => (value === null ? [] : value.length > 0 ? [...value] : ["none"]),
});

export const DEFAULT_PATHS = 4; // as the broker's

/** Names as in the API, so that a URL can be read, and written by a program. */
export const FORM = {
  source: text(),
  destination: text(),
  size: oneOf(["volume", "duration"], "volume"),
  volume_bytes: maybe(),
  duration_s: maybe(),
  not_before: instant(),
  deadline: instant(),
  rate_max_bps: maybe(),
  rate_min_bps: maybe(),
  priority: number(0),
  planner: text(),
  compare: chosen(),
  paths: number(DEFAULT_PATHS),
  path: list(),
  split: flag(),
  shortest_segment_s: maybe(),
  most_segments: maybe(),
  best_effort: flag(),
  preempt: flag(),
  hold: flag(),
  mode: oneOf(["auto", "reserve", "managed", "wrapped", "observed"], "auto"),
  file: text(),
  destination_file: text(),
  overwrite: flag(),
  verify: flag(true),
  mechanism: oneOf(["auto", "pacing", "htb", "fq", "window", "userland"], "auto"),
  protocol: oneOf(["tcp", "udp"], "tcp"),
  address: text(),
  source_ports: text(),
  destination_ports: text(),
  label: text(),
  project: text(),
};

/** The form as the URL has it. An empty `planner` and a `compare` of null leave the choice to `complete`. */
export type Written = StateOf<typeof FORM>;
export type Form = Omit<Written, "compare"> & { compare: readonly string[] };
export type Change = Partial<Form>;

/** The props of each part of the form. */
export interface PartProps {
  form: Form;
  set: (change: Change) => void;
  /** What the broker says of a field of the body. */
  wrong: (field: string) => string | undefined;
  network: Network;
  planners: readonly Planner[];
}

/** Chooses what was left open: the broker's default planner, compared with those that book and plan each request by itself. */
export function complete(written: Written, planners: readonly Planner[]): Form {
  const alone = planners.filter(({ books, joint }) => books && !joint);
  return {
    ...written,
    planner: written.planner || (planners.find((planner) => planner.default)?.name ?? ""),
    compare: written.compare ?? alone.map(({ name }) => name),
  };
}

/**
 * The fields that must be filled in before the broker can be asked. Packets to the other host need destination ports, because "all
 * ports" would include that of its agent. Whether packets to another address need them is up to the rules of the source host.
 */
export function missing(form: Form): string[] {
  const needed = {
    source: form.source !== "",
    destination: form.destination !== "",
    [form.size]: (form.size === "volume" ? form.volume_bytes : form.duration_s) !== null,
    "destination ports": form.mode !== "observed" || form.destination_ports !== "" || form.address !== "",
  };
  return Object.entries(needed).flatMap(([name, given]) => (given ? [] : [name]));
}

/** The booking as the API takes it: what is not asked for is left out. Undefined while something is missing. */
export function bodyOf(form: Form): TransferBody | undefined {
  if (missing(form).length > 0) return undefined;
  const body = {
    source: form.source,
    destination: form.destination,
    ...(form.size === "volume" ? { volume_bytes: form.volume_bytes } : { duration_s: form.duration_s }),
    not_before: form.not_before,
    deadline: form.deadline,
    rate_max_bps: form.rate_max_bps,
    rate_min_bps: form.rate_min_bps,
    priority: form.priority || null,
    planner: form.planner || null,
    paths: form.paths === DEFAULT_PATHS ? null : form.paths,
    path: form.path.length > 0 ? form.path : null,
    split: form.split || null,
    shortest_segment_s: form.shortest_segment_s,
    most_segments: form.most_segments,
    best_effort: form.best_effort || null,
    preempt: form.preempt || null,
    hold: form.hold || null,
    mode: form.mode === "auto" ? null : form.mode,
    mechanism: form.mechanism === "auto" ? null : form.mechanism,
    payload: payloadOf(form),
    label: form.label || null,
    project: form.project || null,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) as unknown as TransferBody;
}

function payloadOf(form: Form): Partial<Schemas["Payload"]> | null {
  if (form.mode === "observed") {
    const { protocol, address, source_ports, destination_ports } = form;
    return {
      match: {
        protocol,
        address: address || null,
        source_ports: source_ports || null,
        destination_ports: destination_ports || null,
      },
    };
  }
  if (form.file === "" || form.mode === "reserve" || form.mode === "wrapped") return null;
  return { path: form.file, destination_path: form.destination_file || null, overwrite: form.overwrite, verify: form.verify };
}

/** The question of POST /v1/quotes: the planners to compare, the chosen one among them. Asked anew only when it differs. */
export function questionOf(form: Form): Schemas["QuoteRequest"] | undefined {
  const body = bodyOf(form);
  // Names alone change no answer.
  return body && { ...body, label: undefined, project: undefined, planners: [...new Set([...form.compare, form.planner])] };
}
