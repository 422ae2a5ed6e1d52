// SPDX-License-Identifier: Apache-2.0
import { Duration, Rate, stateName, Time, Volume } from "../../ui";
import { type Value as Plain, unitOf } from "./difference";

/** A value of a field, as people read it. */
export function Value({ field, of }: { field: string; of: Plain | undefined }) {
  if (of === undefined || of === null) return <span className="muted">–</span>;
  switch (unitOf(field, of)) {
    case "rate":
      return <Rate bps={of as number} />;
    case "volume":
      return <Volume bytes={of as number} />;
    case "seconds":
      return <Duration s={of as number} />;
    case "microseconds":
      return <Duration s={(of as number) / 1e6} />;
    case "time":
      return <Time at={of as string} />;
    default:
      return field === "state" ? stateName(String(of)) : typeof of === "boolean" ? (of ? "yes" : "no") : String(of);
  }
}
