// SPDX-License-Identifier: Apache-2.0
// Steps of the colour of a booked share, as classes of the style sheet; the legend says them in numbers.

export const HEATS = 5;

export function heatOf(share: number | null | undefined): string {
  if (share === undefined) return "heat-unknown";
  if (share === null) return "heat-closed";
  return `heat-${Math.max(0, Math.min(HEATS - 1, Math.floor(share * HEATS)))}`;
}
