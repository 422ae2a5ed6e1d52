// SPDX-License-Identifier: Apache-2.0
// Names for people: of transfers, links, ids and actions of the log.
import type { Link, Transfer } from "../api/types";

/** The label it was given, else where it goes. */
export function transferName(transfer: Pick<Transfer, "label" | "source" | "destination">): string {
  return transfer.label || `${transfer.source} → ${transfer.destination}`;
}

export function linkName(link: Pick<Link, "source" | "target">): string {
  return `${link.source} → ${link.target}`;
}

/** The end of an id, which differs where the beginning, made of the time, is alike. */
export function shortId(id: string): string {
  return id.length <= 12 ? id : `…${id.slice(-6)}`;
}

/** "transfer.moved_up" -> "Transfer moved up" */
export function actionName(action: string): string {
  const words = action.replace(/[._-]+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
