// SPDX-License-Identifier: Apache-2.0
// Submit, a refusal, a patch of one field, cancel: with types that openapi-typescript made of the contract.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

type Request = components["schemas"]["TransferRequest"];

const { BWB_URL: baseUrl = "", BWB_TOKEN: token = "" } = process.env;
const broker = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const request: Request = { source: "A", destination: "B", volume_bytes: 1_000_000_000, priority: 7, paths: 2, planner: "fbls", label: "typescript" };

const submitted = await broker.POST("/v1/transfers", { body: request });
assert.equal(submitted.response.status, 201);
const transfer = submitted.data;
assert.ok(transfer?.plan.finish && submitted.response.headers.get("Location")?.endsWith(transfer.id));

const refused = await broker.POST("/v1/transfers", { body: { ...request, deadline: transfer.plan.finish, volume_bytes: 10 ** 15 } });
assert.equal(refused.response.status, 409);
assert.equal(refused.error?.binding?.link, "L1");
assert.ok(refused.error?.counter_offers?.some((offer) => offer.kind === "smallest_deadline" && offer.deadline));

const path = { transfer_id: transfer.id };
const changed = await broker.PATCH("/v1/transfers/{transfer_id}", {
  params: { path, header: { "If-Match": submitted.response.headers.get("ETag") ?? "" } },
  body: { label: "patched" },
});
assert.equal(changed.data?.label, "patched");
for (const name of ["volume_bytes", "priority", "paths", "planner"] as const) assert.equal(changed.data?.[name], transfer[name]);

const canceled = await broker.POST("/v1/transfers/{transfer_id}/cancel", { params: { path } });
assert.equal(canceled.data?.state, "CANCELED");
console.log(transfer.id);
