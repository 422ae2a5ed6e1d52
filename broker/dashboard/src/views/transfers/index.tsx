// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo } from "react";
import { to } from "../../addresses";
import { usePages } from "../../api/pages";
import { useMay, useSession } from "../../api/session";
import type { Schemas, Transfer } from "../../api/types";
import { exact } from "../../format/units";
import { Answer, Button, ButtonLink, Empty, Table, View } from "../../ui";
import { useUrlState } from "../../url-state";
import { COLUMNS } from "./columns";
import { Filters } from "./filters";
import { isFiltered, NO_FILTER, question, type Sort, STATE } from "./question";
import "./transfers.css";
import { useSteady } from "./use-steady";

// Bytes and rates are reported without an event. A reader who has scrolled far asks for more rows each time, so less often.
const OFTEN_MS = 10_000;
const SELDOM_MS = 60_000;
const MANY = 1_000;

const keyOf = (transfer: Transfer): string => transfer.id;

export default function Transfers() {
  const { id: me } = useSession();
  const may = useMay();
  const [state, setState] = useUrlState(STATE);
  const path = question(state, me);
  const pages = usePages<Transfer>(path);
  useMeasured(pages.reload, pages.items.length > MANY ? SELDOM_MS : OFTEN_MS);
  const { rows, waiting, release, hold } = useSteady(pages.items, keyOf, pages.outdated ? "" : path);
  const projects = useMemo(() => [...new Set(pages.items.flatMap(({ project }) => project ?? []))].sort(), [pages.items]);
  const total = (pages.first as Schemas["TransferPage"] | undefined)?.total;
  return (
    <View title="Transfers" actions={may("submit") && <ButtonLink to={to.request()}>Request a transfer</ButtonLink>}>
      <Filters state={state} projects={projects} onChange={setState} />
      <Answer
        of={pages}
        empty={(all) => all.length === 0 && <Nothing filtered={isFiltered(state)} onClear={() => setState(NO_FILTER)} />}
      >
        {() => (
          <div {...hold}>
            <Table
              name="transfers"
              caption="Transfers"
              columns={COLUMNS}
              rows={rows}
              rowKey={keyOf}
              sort={state.sort}
              onSort={(sort) => setState({ sort: sort as Sort })}
              more={pages.more}
              onMore={pages.loadMore}
              all={pages.all}
              tools={
                <>
                  {typeof total === "number" && (
                    <span>
                      {exact(total)} {total === 1 ? "transfer" : "transfers"}
                    </span>
                  )}
                  {/* Always there, so that its coming moves no row either. */}
                  <Button kind="quiet" className={waiting === 0 ? "transfers-idle" : ""} disabled={waiting === 0} onClick={release}>
                    {waiting === 0 ? "Up to date" : `${exact(waiting)} changes of order wait: show`}
                  </Button>
                </>
              }
            />
          </div>
        )}
      </Answer>
    </View>
  );
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const may = useMay();
  if (filtered) return <Empty title="No transfer matches" action={<Button onClick={onClear}>Clear filters</Button>} />;
  return (
    <Empty title="No transfers yet" action={may("submit") && <ButtonLink to={to.request()}>Request a transfer</ButtonLink>}>
      What is booked, under way or over will be listed here.
    </Empty>
  );
}

function useMeasured(reload: () => void, everyMs: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [reload, everyMs]);
}
