// SPDX-License-Identifier: Apache-2.0
// Every address of the page: how to write it, and what a view reads from it. routes.ts says which view it shows: it imports the
// views, and views import this file.
const part = encodeURIComponent;

export const to = {
  overview: () => "/",
  links: () => "/links",
  link: (id: string) => `/links/${part(id)}`,
  transfers: () => "/transfers",
  transfer: (id: string) => `/transfers/${part(id)}`,
  schedule: () => "/schedule",
  hosts: () => "/hosts",
  host: (name: string) => `/hosts/${part(name)}`,
  request: () => "/request",
  jobs: () => "/jobs",
  job: (kind: string, id: string) => `/jobs/${part(kind)}/${part(id)}`,
  access: () => "/access",
  audit: () => "/audit",
  signin: () => "/signin",
} as const;

/** The props of a view: the named parts of its address, decoded. `ViewProps<"id">` for /links/:id. */
export interface ViewProps<Names extends string = never> {
  params: Readonly<Record<Names, string>>;
}
