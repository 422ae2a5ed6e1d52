// SPDX-License-Identifier: Apache-2.0
// All tokens, valid or not: owner, scopes, last use, and the button that revokes.
import { useMemo, useState } from "react";
import { to } from "../../addresses";
import { useMay, useSession } from "../../api/session";
import type { Token } from "../../api/types";
import { exact } from "../../format/units";
import { useNow } from "../../format/use-now";
import { Button, Choice, type Column, Link, SearchField, Table, Tag, Time } from "../../ui";
import { oneOf, text, useUrlState } from "../../url-state";
import { Revoke } from "./revoke";
import { Scopes } from "./scopes";
import { limitsOf, VALIDITY, validity, works } from "./tokens";

const SHOWN = [
  { value: "people", label: "People and programs" },
  { value: "agents", label: "Agents" },
  { value: "ended", label: "Ended" },
  { value: "all", label: "All" },
] as const;
const STATE = { show: oneOf(["people", "agents", "ended", "all"], "people"), search: text() };

export function TokenTable({ tokens }: { tokens: readonly Token[] }) {
  const [{ show, search }, setState] = useUrlState(STATE);
  const [ending, setEnding] = useState<Token>();
  const now = useNow(30_000);
  const { id: own } = useSession();
  const operator = useMay()("operate");
  const columns = useMemo(() => columnsOf(now, own, operator, setEnding), [now, own, operator]);
  const rows = tokens.filter((token) => shown(token, show, now) && found(token, search));
  return (
    <>
      <Table
        name="tokens"
        caption="Tokens"
        columns={columns}
        rows={rows}
        rowKey={(token) => token.id}
        sort="-created"
        height="32rem"
        tools={
          <>
            <Choice label="Which tokens" options={SHOWN} value={show} onChange={(next) => setState({ show: next })} />
            <SearchField label="Name, host or id" value={search} onChange={(next) => setState({ search: next })} />
          </>
        }
      />
      {ending && <Revoke token={ending} all={tokens} onClose={() => setEnding(undefined)} />}
    </>
  );
}

function shown(token: Token, show: (typeof SHOWN)[number]["value"], now: Date): boolean {
  if (show === "all") return true;
  if (show === "ended") return !works(token, now);
  return works(token, now) && (token.host !== null) === (show === "agents");
}

function found(token: Token, search: string): boolean {
  return [token.name, token.host ?? "", token.id].some((one) => one.toLowerCase().includes(search.toLowerCase()));
}

function columnsOf(now: Date, own: string, operator: boolean, end: (token: Token) => void): Column<Token>[] {
  return [
    {
      key: "name",
      title: "Name",
      sort: true,
      width: "18rem",
      value: (token) => token.name,
      show: (token) => <Name token={token} own={own} operator={operator} />,
    },
    {
      key: "scopes",
      title: "May",
      width: "11rem",
      value: (token) => token.scopes.join(" "),
      show: (token) => <Scopes of={token.scopes} />,
    },
    {
      key: "state",
      title: "State",
      sort: true,
      width: "8.5rem",
      value: (token) => VALIDITY[validity(token, now)].word,
      show: (token) => <State token={token} now={now} />,
    },
    {
      key: "last_used",
      title: "Last used",
      sort: true,
      hint: "To a minute",
      value: (token) => token.last_used,
      show: (token) => (token.last_used ? <Time at={token.last_used} relative /> : "Never"),
    },
    {
      key: "expires",
      title: "Expires",
      sort: true,
      value: (token) => token.expires,
      show: (token) => (token.expires ? <Time at={token.expires} /> : "Never"),
    },
    { key: "created", title: "Created", sort: true, value: (token) => token.created, show: (token) => <Time at={token.created} /> },
    {
      key: "sessions",
      title: "Sessions",
      sort: true,
      align: "end",
      width: "7.5rem",
      hint: "Of this page, open now",
      value: (token) => token.sessions,
    },
    {
      key: "transfers",
      title: "Transfers",
      sort: true,
      align: "end",
      width: "7.5rem",
      hint: "Live ones that were booked with it, and how many it may have",
      value: (token) => token.transfers,
      show: (token) => <Share token={token} />,
    },
    {
      key: "revoke",
      title: "Revoke",
      width: "6.5rem",
      align: "end",
      value: () => null,
      show: (token) =>
        works(token, now) && (
          <Button kind="quiet" aria-label={`Revoke ${token.name}`} onClick={() => end(token)}>
            Revoke
          </Button>
        ),
    },
  ];
}

function Name({ token, own, operator }: { token: Token; own: string; operator: boolean }) {
  const named =
    token.host !== null ? (
      <Link to={to.host(token.host)}>{token.name}</Link>
    ) : operator ? (
      <Link to={`${to.audit()}?actor=${encodeURIComponent(token.id)}`}>{token.name}</Link>
    ) : (
      token.name
    );
  return (
    <span title={token.host !== null ? token.name : `${token.name}: ${operator ? "what was done with it" : token.id}`}>
      {named} {token.id === own && <span className="muted">(you)</span>}
    </span>
  );
}

/** What it has and may have of open transfers; the other limits where the pointer rests. */
function Share({ token }: { token: Token }) {
  const most = token.limits.open_transfers?.value ?? null;
  return (
    <span title={limitsOf(token).join("\n")}>
      {token.transfers}
      {most !== null && <span className="muted"> / {exact(most)}</span>}
    </span>
  );
}

function State({ token, now }: { token: Token; now: Date }) {
  const { word, tone } = VALIDITY[validity(token, now)];
  return <Tag tone={tone}>{word}</Tag>;
}
