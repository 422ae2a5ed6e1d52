// SPDX-License-Identifier: Apache-2.0
// The form of a simulation: its state in the URL, the specification that it makes for the API (docs/simulation.md), and the state
// made from an earlier specification, to run it again with changes.
import { parseRate, rate } from "../../format/units";
import { type Codec, flag, maybe, number, oneOf, type StateOf, text } from "../../url-state";

/** Such as planners: never none, so the default needs no word for an empty list. */
const some = (fallback: readonly string[]): Codec<readonly string[]> => ({
  fallback,
  read: (texts) => texts,
  write: (value) => [...value],
});

export const SPECIFICATION = {
  planners: some(["vbls", "fbls", "ps"]),
  requests: number(1000),
  seed: number(1),
  arrivals: oneOf(["load", "rate", "other"], "load"),
  load: number(0.7),
  arrivals_per_s: number(1),
  sizes: oneOf(["pareto", "exponential", "fixed"], "pareto"),
  shape: number(1.1),
  least_bytes: number(500_000_000),
  most_bytes: number(100_000_000_000),
  mean_bytes: number(10_000_000_000),
  rates: text(),
  deadline_share: number(0),
  least_factor: number(2),
  most_factor: number(10),
  lead_share: number(0),
  least_seconds: number(0),
  most_seconds: number(3600),
  nodes: text(),
  batch_s: number(10),
  paths: number(4),
  split: flag(),
  shortest_segment_s: maybe(),
  most_segments: maybe(),
  solver_time_limit_s: number(10),
  more: text(),
};

export type Specification = StateOf<typeof SPECIFICATION>;

/** The props of each part of the form. */
export interface SpecificationProps {
  form: Specification;
  set: (change: Partial<Specification>) => void;
  wrong: (field: keyof Specification) => string | undefined;
}

export interface Mistake {
  field: keyof Specification;
  detail: string;
}

/** The body of POST /v1/simulations, and what of the form cannot be read. */
export function documentOf(form: Specification): { document: Record<string, unknown>; mistakes: Mistake[] } {
  const mistakes: Mistake[] = [];
  const document: Record<string, unknown> = {
    planners: form.planners,
    requests: form.requests,
    seed: form.seed,
    ...(form.arrivals === "load" ? { load: form.load } : form.arrivals === "rate" ? { arrivals_per_s: form.arrivals_per_s } : {}),
    sizes: sizesOf(form),
    batch_s: form.batch_s,
    solver_time_limit_s: form.solver_time_limit_s,
    options: optionsOf(form),
  };
  if (form.rates.trim()) document.rates = ratesOf(form.rates, mistakes);
  if (form.deadline_share > 0)
    document.deadlines = { share: form.deadline_share, least_factor: form.least_factor, most_factor: form.most_factor };
  if (form.lead_share > 0)
    document.leads = { share: form.lead_share, least_seconds: form.least_seconds, most_seconds: form.most_seconds };
  if (form.nodes.trim()) document.nodes = form.nodes.split(/[,\s]+/).filter(Boolean);
  if (form.planners.length === 0) mistakes.push({ field: "planners", detail: "Choose at least one" });
  return { document: { ...document, ...moreOf(form.more, mistakes) }, mistakes };
}

function sizesOf(form: Specification): Record<string, unknown> {
  if (form.sizes === "pareto")
    return { distribution: "pareto", shape: form.shape, least_bytes: form.least_bytes, most_bytes: form.most_bytes };
  return { distribution: form.sizes, mean_bytes: form.mean_bytes };
}

function optionsOf({ paths, split, shortest_segment_s, most_segments }: Specification): Record<string, unknown> {
  return {
    paths,
    split,
    ...(shortest_segment_s !== null && { shortest_segment_s }),
    ...(most_segments !== null && { most_segments }),
  };
}

/** "1G:0.3, 5G:0.3, :0.4" -> rate classes; without a rate before the colon: as much as the path carries. */
function ratesOf(written: string, mistakes: Mistake[]): { rate_max_bps?: number; weight: number }[] {
  return written.split(",").map((part) => {
    const [fast = "", weight = "1"] = part.split(":").map((one) => one.trim());
    const bps = fast === "" ? null : parseRate(fast);
    if ((fast !== "" && bps === null) || !(Number(weight) >= 0))
      mistakes.push({ field: "rates", detail: `${part.trim()} cannot be read; write for example 1G:0.3, 5G:0.7` });
    return { ...(bps !== null && { rate_max_bps: bps }), weight: Number(weight) };
  });
}

function moreOf(written: string, mistakes: Mistake[]): Record<string, unknown> {
  if (!written.trim()) return {};
  try {
    const read: unknown = JSON.parse(written);
    if (typeof read === "object" && read !== null && !Array.isArray(read)) return read as Record<string, unknown>;
  } catch {
    // said below
  }
  mistakes.push({ field: "more", detail: 'Must be a JSON object, such as {"matrix": [{"source": "A", "destination": "B"}]}' });
  return {};
}

const KNOWN = [
  "planners",
  "requests",
  "seed",
  "load",
  "arrivals_per_s",
  "sizes",
  "rates",
  "deadlines",
  "leads",
  "nodes",
  "batch_s",
  "options",
  "solver_time_limit_s",
];

/** The form that asks for this: what it has no field for goes into `more`. */
export function formOf(request: Record<string, unknown>): Partial<Specification> {
  const part = (name: string): Record<string, unknown> => (request[name] ?? {}) as Record<string, unknown>;
  const { network, ...rest } = request;
  const others = Object.entries(rest).filter(([name, value]) => !KNOWN.includes(name) && value !== null);
  const more = Object.fromEntries(network === "current" || network === undefined ? others : [...others, ["network", network]]);
  const form: Record<string, unknown> = {
    ...pick(request, ["planners", "requests", "seed", "load", "arrivals_per_s", "batch_s", "solver_time_limit_s"]),
    arrivals: request.load != null ? "load" : request.arrivals_per_s != null ? "rate" : "other",
    ...pick(part("sizes"), ["shape", "least_bytes", "most_bytes", "mean_bytes"]),
    sizes: part("sizes").distribution ?? "pareto",
    rates: Array.isArray(request.rates) ? request.rates.map(rateClass).join(", ") : "",
    ...pick(part("deadlines"), ["least_factor", "most_factor"]),
    deadline_share: shareOf(part("deadlines"), "least_factor", "most_factor"),
    ...pick(part("leads"), ["least_seconds", "most_seconds"]),
    lead_share: shareOf(part("leads"), "least_seconds", "most_seconds"),
    nodes: Array.isArray(request.nodes) ? request.nodes.join(", ") : "",
    ...pick(part("options"), ["paths", "split", "shortest_segment_s", "most_segments"]),
    more: Object.keys(more).length > 0 ? JSON.stringify(more) : "",
  };
  return form as Partial<Specification>;
}

function pick(from: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => from[name] != null).map((name) => [name, from[name]]));
}

/** A share that is not given is everybody, if anything else is. */
function shareOf(range: Record<string, unknown>, ...asked: string[]): number {
  return typeof range.share === "number" ? range.share : asked.some((name) => name in range) ? 1 : 0;
}

function rateClass(given: { rate_max_bps?: number | null; weight?: number }): string {
  const bps = given.rate_max_bps;
  // The short form where it says exactly this.
  const fast = bps == null ? "" : parseRate(rate(bps)) === bps ? rate(bps).replaceAll("\u202f", "") : String(bps);
  return `${fast}:${given.weight ?? 1}`;
}

/** Where the form shows what the API says of a field of the specification. */
export function fieldOf(field: string): keyof Specification | undefined {
  const [head = "", tail = ""] = field.split(/[.[]/);
  if (head === "sizes" && tail in SPECIFICATION) return tail as keyof Specification;
  if (head === "deadlines") return tail === "share" ? "deadline_share" : tail === "most_factor" ? "most_factor" : "least_factor";
  if (head === "leads") return tail === "share" ? "lead_share" : tail === "most_seconds" ? "most_seconds" : "least_seconds";
  if (head === "options" && tail in SPECIFICATION) return tail as keyof Specification;
  if (head in SPECIFICATION) return head as keyof Specification;
  return ["matrix", "trace", "network", "begin", "points"].includes(head) ? "more" : undefined;
}
