// SPDX-License-Identifier: Apache-2.0
// What was asked for in the last 24 hours: admitted and refused in each hour, and why refused.
import type { Schemas } from "../../api/types";
import { local, seconds } from "../../format/time";
import { Card } from "../../ui";
import { reasonWords } from "./reasons";

type Decisions = Schemas["Decisions"];

export function Asked({ of }: { of: Decisions }) {
  const asked = of.admitted_day + of.refused_day;
  return (
    <Card title="Asked for in 24 h">
      {asked === 0 ? (
        <p className="muted">Nothing was asked for.</p>
      ) : (
        <>
          <Hours of={of} />
          <p>
            <span className="overview-key admitted" /> {of.admitted_day} admitted <span className="overview-key refused" />{" "}
            {of.refused_day} refused
          </p>
          {of.reasons.length > 0 && <Reasons of={of} />}
        </>
      )}
    </Card>
  );
}

const [WIDTH, HEIGHT] = [240, 48]; // of the drawing; the style sheet scales it

function Hours({ of: { hours, admitted_day: admitted, refused_day: refused } }: { of: Decisions }) {
  const most = Math.max(1, ...hours.map((hour) => hour.admitted + hour.refused));
  const step = WIDTH / hours.length;
  const tall = (number: number): number => (number / most) * HEIGHT;
  return (
    <svg
      className="overview-hours"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Each hour of the last 24: ${admitted} admitted, ${refused} refused, at most ${most} an hour`}
    >
      {hours.map((hour, index) => (
        <g key={hour.begin}>
          <title>{`from ${local(seconds(hour.begin))}: ${hour.admitted} admitted, ${hour.refused} refused`}</title>
          <rect className="ground" x={index * step} y={0} width={step} height={HEIGHT} />
          <rect
            className="admitted"
            x={index * step + 1}
            y={HEIGHT - tall(hour.admitted)}
            width={step - 2}
            height={tall(hour.admitted)}
          />
          <rect
            className="refused"
            x={index * step + 1}
            y={HEIGHT - tall(hour.admitted + hour.refused)}
            width={step - 2}
            height={tall(hour.refused)}
          />
        </g>
      ))}
    </svg>
  );
}

function Reasons({ of: { reasons } }: { of: Decisions }) {
  const most = Math.max(1, ...reasons.map((reason) => reason.day));
  return (
    <table className="overview-bars">
      <caption className="unseen">Why requests were refused</caption>
      <thead>
        <tr>
          <th scope="col">Refused because</th>
          <th scope="col" className="end">
            1 h
          </th>
          <th scope="col" className="end">
            24 h
          </th>
        </tr>
      </thead>
      <tbody>
        {reasons.map(({ reason, hour, day }) => (
          <tr key={reason}>
            <th scope="row" title={reason}>
              {reasonWords(reason)}
              <span className="overview-bar refused" style={{ width: `${(100 * day) / most}%` }} />
            </th>
            <td className="end">{hour}</td>
            <td className="end">{day}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
