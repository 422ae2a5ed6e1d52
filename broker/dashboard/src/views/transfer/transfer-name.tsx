// SPDX-License-Identifier: Apache-2.0

import { to } from "../../addresses";
import { at } from "../../api/client";
import type { Transfer } from "../../api/types";
import { useQuery } from "../../api/use";
import { shortId, transferName } from "../../format/names";
import { Link } from "../../ui";

/** Another transfer, by its name, leading to it. */
export function TransferName({ id }: { id: string }) {
  const { data } = useQuery<Transfer>(at`/v1/transfers/${id}`);
  return (
    <Link to={to.transfer(id)} title={`Transfer ${id}`}>
      {data ? transferName(data) : shortId(id)}
    </Link>
  );
}
