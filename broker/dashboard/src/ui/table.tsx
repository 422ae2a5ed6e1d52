// SPDX-License-Identifier: Apache-2.0
// The table of every list: sorted here or by the server, ten thousand rows without a stutter, and saved as CSV or JSON.
import { type ReactNode, useMemo, useRef, useState } from "react";
import { Button } from "./button";
import { type Cell, save, toCsv, toJson } from "./export";
import { Icon } from "./icons";
import { descends, sorted, sortName, toggled } from "./sorting";
import "./table.css";
import { asProblem } from "../api/problem";
import { toast } from "./toast";
import { useRows } from "./use-rows";

export interface Column<R> {
  /** Also the name of the column in an export. */
  key: string;
  title: string;
  /** What is sorted and exported: exact numbers, RFC 3339. */
  value: (row: R) => Cell;
  /** What is shown; `value` when it is left out. */
  show?: (row: R) => ReactNode;
  /** true: by `key`; a text: the name by which the server sorts. */
  sort?: boolean | string;
  align?: "end";
  /** Such as "12rem". Columns without one share what is left. */
  width?: string;
  /** What the column means, on hover of its title. */
  hint?: string;
}

export interface TableProps<R> {
  /** Of the file of an export. */
  name: string;
  caption: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  rowKey: (row: R) => string;
  /** "finish" or "-finish". */
  sort?: string | undefined;
  /** With it the server sorts; without it the table does. */
  onSort?: (sort: string) => void;
  /** There are rows behind the last one; onMore is called as they come near. */
  more?: boolean;
  onMore?: () => void;
  /** Every row for an export, when more are to come: pages.all. */
  all?: () => Promise<readonly R[]>;
  /** The key of the row to point out. */
  current?: string | undefined;
  /** Such as "24rem"; the default is what is left of the screen. */
  height?: string;
  /** Filters and buttons above it. */
  tools?: ReactNode;
}

export function Table<R>(props: TableProps<R>) {
  const { name, caption, columns, rows, rowKey, onSort, more = false, onMore, all, current, height, tools } = props;
  const [ownSort, setOwnSort] = useState(props.sort);
  const sort = onSort ? props.sort : ownSort;
  const ordered = useMemo(() => (onSort ? rows : inOrder(columns, rows, sort)), [onSort, rows, columns, sort]);
  const box = useRef<HTMLDivElement>(null);
  const { begin, end, rowPx } = useRows(box, ordered.length, more ? onMore : undefined);
  return (
    <div className="table">
      <div className="table-tools row apart">
        <div className="row">{tools}</div>
        <div className="row">
          <span className="muted" role="status">
            {ordered.length}
            {more && "+"} {ordered.length === 1 && !more ? "row" : "rows"}
          </span>
          <Export name={name} caption={caption} columns={columns} rows={ordered} all={more ? all : undefined} />
        </div>
      </div>
      <div
        ref={box}
        className="table-box"
        role="region"
        aria-label={caption}
        tabIndex={0}
        style={height ? { maxHeight: height } : undefined}
      >
        <table aria-rowcount={more ? -1 : ordered.length + 1}>
          <caption className="unseen">{caption}</caption>
          <colgroup>
            {columns.map((column) => (
              <col key={column.key} style={column.width ? { width: column.width } : undefined} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <Header key={column.key} column={column} sort={sort} onSort={onSort ?? setOwnSort} />
              ))}
            </tr>
          </thead>
          <tbody>
            <Gap px={begin * rowPx} columns={columns.length} />
            {ordered.slice(begin, end).map((row, index) => (
              <tr key={rowKey(row)} aria-rowindex={begin + index + 2} aria-current={rowKey(row) === current || undefined}>
                {columns.map((column) => (
                  <td key={column.key} className={column.align}>
                    {column.show ? column.show(row) : String(column.value(row) ?? "–")}
                  </td>
                ))}
              </tr>
            ))}
            <Gap px={(ordered.length - end) * rowPx} columns={columns.length} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

function sortOf<R>(column: Column<R>): string | undefined {
  if (column.sort === undefined || column.sort === false) return undefined;
  return column.sort === true ? column.key : column.sort;
}

function inOrder<R>(columns: readonly Column<R>[], rows: readonly R[], sort: string | undefined): readonly R[] {
  const by = sort === undefined ? undefined : columns.find((column) => sortOf(column) === sortName(sort));
  return by && sort !== undefined ? sorted(rows, by.value, descends(sort)) : rows;
}

function Header<R>({ column, sort, onSort }: { column: Column<R>; sort: string | undefined; onSort: (sort: string) => void }) {
  const name = sortOf(column);
  const active = name !== undefined && sort !== undefined && sortName(sort) === name;
  const down = active && descends(sort);
  return (
    <th
      scope="col"
      className={column.align}
      title={column.hint}
      aria-sort={active ? (down ? "descending" : "ascending") : undefined}
    >
      {name === undefined ? (
        column.title
      ) : (
        <button type="button" onClick={() => onSort(toggled(sort, name))}>
          {column.title}
          <Icon name={active ? (down ? "down" : "up") : "both"} />
        </button>
      )}
    </th>
  );
}

/** Stands for rows that are not in the document. */
function Gap({ px, columns }: { px: number; columns: number }) {
  if (px <= 0) return null;
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={columns} style={{ height: px }} />
    </tr>
  );
}

type ExportProps<R> = Pick<TableProps<R>, "name" | "caption" | "columns" | "rows" | "all">;

function Export<R>({ name, caption, columns, rows, all }: ExportProps<R>) {
  const [busy, setBusy] = useState(false);
  const run = async (ending: "csv" | "json"): Promise<void> => {
    setBusy(true);
    try {
      const every = all ? await all() : rows;
      if (ending === "csv") save(`${name}.csv`, "text/csv;charset=utf-8", toCsv(columns, every));
      else save(`${name}.json`, "application/json", toJson(columns, every));
    } catch (reason) {
      toast(asProblem(reason));
    } finally {
      setBusy(false);
    }
  };
  return (
    <span className="row" role="group" aria-label={`Save ${caption}`}>
      <Button kind="quiet" busy={busy} aria-label={`Save ${caption} as CSV`} onClick={() => void run("csv")}>
        CSV
      </Button>
      <Button kind="quiet" busy={busy} aria-label={`Save ${caption} as JSON`} onClick={() => void run("json")}>
        JSON
      </Button>
    </span>
  );
}
