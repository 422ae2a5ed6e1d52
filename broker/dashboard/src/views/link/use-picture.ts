// SPDX-License-Identifier: Apache-2.0
// What is known of a link around the range that is shown. While another range loads, the old picture stays.
import { useEffect, useMemo, useRef } from "react";
import { at, url } from "../../api/client";
import type { Calendar } from "../../api/types";
import { type Query, useQuery } from "../../api/use";
import { iso, seconds } from "../../format/time";
import type { StepFunction } from "../../plot/align";
import type { Range } from "../../plot/steps";
import { type Bookings, type BookingsDocument, bookingsOf } from "./bookings";
import { type By, coloured, type Layer, stackOf } from "./layers";
import { capacityOf, measuredOf, type Picture, pictureOf } from "./picture";
import { frameOf, pointsOf } from "./range";

export interface Known extends Picture {
  calendar: Calendar;
  bookings: Bookings;
  capacity: StepFunction;
  measured: StepFunction;
  layers: readonly Layer[];
  colours: ReadonlyMap<string, string>;
}

const MOST_NAMED = 1_000; // as many as the broker names
const MEASURED_EVERY_MS = 20_000;
const POINTS_A_COLUMN = 3; // how it begins, its peak and its trough

export function usePicture(link: string, range: Range, by: By, top: number): Query<Known> {
  const frame = frameOf(range);
  const points = pointsOf(frame, range);
  const asked = { from: iso(frame[0]), to: iso(frame[1]), points };
  const calendar = useQuery<Calendar>(url(at`/v1/links/${link}/calendar`, asked), { keep: true });
  const booked = useQuery<BookingsDocument>(url(at`/v1/links/${link}/bookings`, { ...asked, top: MOST_NAMED }), {
    keep: true,
    everyMs: MEASURED_EVERY_MS,
  });
  const data = useKnown(calendar.data, booked.data, by, top, points / POINTS_A_COLUMN);
  const reload = (): void => {
    calendar.reload();
    booked.reload();
  };
  return {
    data,
    problem: calendar.problem ?? booked.problem,
    loading: calendar.loading || booked.loading,
    outdated: calendar.outdated || booked.outdated,
    reload,
  };
}

function useKnown(
  calendar: Calendar | undefined,
  booked: BookingsDocument | undefined,
  by: By,
  top: number,
  columns: number,
): Known | undefined {
  const before = useRef<ReadonlyMap<string, string>>(new Map());
  const bookings = useMemo(() => booked && bookingsOf(booked), [booked]);
  const known = useMemo((): Known | undefined => {
    if (!calendar || !booked || !bookings) return undefined;
    const frame: Range = [seconds(booked.begin), seconds(booked.end)];
    const stack = stackOf(bookings, by, top, frame, columns);
    const colours = coloured(
      stack.layers.map(({ key }) => key),
      before.current,
    ); // prettier-ignore
    const [capacity, measured] = [capacityOf(calendar), measuredOf(booked.measured)];
    return {
      calendar,
      bookings,
      capacity,
      measured,
      layers: stack.layers,
      colours,
      ...pictureOf(stack, capacity, measured, frame, colours),
    };
    // `columns` follows the range, and the answer to it brings a new picture anyway.
  }, [calendar, booked, bookings, by, top]);
  useEffect(() => {
    if (known) before.current = known.colours;
  }, [known]);
  return known;
}
