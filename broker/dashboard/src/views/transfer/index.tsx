// SPDX-License-Identifier: Apache-2.0
import { useCallback } from "react";
import type { ViewProps } from "../../addresses";
import { at, url } from "../../api/client";
import type { Page, Transfer } from "../../api/types";
import { useQuery } from "../../api/use";
import { transferName } from "../../format/names";
import { Answer, Tag, View } from "../../ui";
import { isLive } from "../transfers/followed";
import { PromiseTag } from "../transfers/promise";
import { Actions } from "./actions";
import { Asked } from "./asked";
import { Audit } from "./audit";
import { Chain } from "./chain";
import { Course } from "./course";
import { History } from "./history";
import { WithLinkNames } from "./link-names";
import { Paths } from "./paths";
import { Summary } from "./summary";
import "./transfer.css";

// What is reported comes without an event.
const MEASURED_MS = 5_000;
const MOST_SUCCESSORS = 100;

export default function TransferView({ params: { id } }: ViewProps<"id">) {
  const transfer = useQuery<Transfer>(url(at`/v1/transfers/${id}`, { outlook: true }), { everyMs: MEASURED_MS });
  const successors = useQuery<Page<Transfer>>(url("/v1/transfers", { after: id, limit: MOST_SUCCESSORS }));
  const behind = successors.data?.items ?? [];
  const { data, reload } = transfer;
  const again = useCallback(() => reload(), [reload]);
  return (
    <View
      title={data ? transferName(data) : "Transfer"}
      lead={data && <Lead transfer={data} />}
      actions={data && <Actions transfer={data} successors={behind.filter(isLive)} onConflict={again} />}
    >
      <Answer of={transfer}>
        {(found) => (
          <WithLinkNames>
            <div className="stack">
              <Summary transfer={found} />
              <Course transfer={found} />
              <div className="columns transfer-half">
                <Paths plan={found.plan} />
                <Chain transfer={found} successors={behind} />
              </div>
              <Asked transfer={found} />
              <History id={found.id} />
              <Audit id={found.id} />
            </div>
          </WithLinkNames>
        )}
      </Answer>
    </View>
  );
}

function Lead({ transfer }: { transfer: Transfer }) {
  return (
    <>
      <Tag of={transfer.state} />
      {transfer.paused && <Tag tone="warn">Paused</Tag>}
      <PromiseTag outlook={transfer.outlook} />
    </>
  );
}
