// SPDX-License-Identifier: Apache-2.0
// Every address of the page, and how to write it. Which view it shows: routes.ts.
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
