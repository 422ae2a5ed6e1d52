// SPDX-License-Identifier: Apache-2.0
// A refusal of the broker (RFC 9457), or of the network on the way to it, as an error that a view can show.

export interface FieldError {
  field: string;
  detail: string;
}

export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    /** HTTP status; 0 when there was no answer at all. */
    readonly status: number,
    /** The stable last part of `type`: `infeasible`, `forbidden`, `breaks-promises` ...; `unreachable` without an answer. */
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly errors: FieldError[] = [],
    /** The whole document: `binding`, `counter_offers`, `outcomes` and what else explains the refusal. */
    readonly document: Record<string, unknown> = {},
  ) {
    super(detail);
  }

  get denied(): boolean {
    return this.status === 403;
  }

  /** What the broker says of one field of the body; a field within it counts too (`links.0.id` for `links`). */
  of(field: string): string | undefined {
    return this.errors.find((error) => error.field === field || error.field.startsWith(`${field}.`))?.detail;
  }

  static unreachable(reason: unknown): Problem {
    const detail = "The broker does not answer. What is shown may be old; it is asked again as soon as it is back.";
    return new Problem(0, "unreachable", "No answer", detail, [], { reason: String(reason) });
  }

  static async from(answer: Response): Promise<Problem> {
    const document = await jsonOf(answer);
    const type = String(document.type ?? "about:blank");
    const detail = String(document.detail ?? `The broker answered ${answer.status} ${answer.statusText}`);
    const errors = Array.isArray(document.errors) ? (document.errors as FieldError[]) : [];
    const code = type === "about:blank" ? "fault" : (type.split("/").at(-1) ?? "fault");
    return new Problem(answer.status, code, String(document.title ?? "Refused"), detail, errors, document);
  }
}

/** A proxy in between may answer with a page of HTML: then the status must do. */
async function jsonOf(answer: Response): Promise<Record<string, unknown>> {
  try {
    const document: unknown = await answer.json();
    return typeof document === "object" && document !== null ? (document as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Anything that was thrown, as a Problem. */
export function asProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  return new Problem(0, "fault", "A fault of this page", thrown instanceof Error ? thrown.message : String(thrown));
}
