// SPDX-License-Identifier: Apache-2.0
// Jobs, which take longer than a request: simulations, and re-optimisations of what is booked.
import { useMay } from "../../api/session";
import { Button, Choice, TabPanel, Tabs, View } from "../../ui";
import { oneOf, useUrlState } from "../../url-state";
import { JobList } from "./job-list";
import "./jobs.css";
import { PlanFormCard } from "./plan-form";
import { SimulationForm } from "./simulation-form";

const STATE = {
  kind: oneOf(["simulation", "plan"], "simulation"),
  show: oneOf(["all", "open", "done", "ended"], "all"),
  new: oneOf(["", "simulation", "plan"], ""),
};

const KINDS = [
  { key: "simulation", title: "Simulations" },
  { key: "plan", title: "Re-optimisations" },
] as const;

const SHOWN = [
  { value: "all", label: "All" },
  { value: "open", label: "Under way" },
  { value: "done", label: "Done" },
  { value: "ended", label: "Failed or canceled" },
] as const;

const STATES = { all: [], open: ["QUEUED", "RUNNING"], done: ["DONE"], ended: ["FAILED", "CANCELED"] } as const;

export default function Jobs() {
  const [state, setState] = useUrlState(STATE);
  const may = useMay();
  const close = (): void => setState({ new: "" });
  const actions = (
    <>
      {may("submit") && state.new === "" && (
        <Button onClick={() => setState({ new: "simulation", kind: "simulation" })}>New simulation</Button>
      )}
      {may("operate") && state.new === "" && (
        <Button onClick={() => setState({ new: "plan", kind: "plan" })}>New re-optimisation</Button>
      )}
    </>
  );
  return (
    <View title="Jobs" actions={actions}>
      {state.new === "simulation" && may("submit") && <SimulationForm onClose={close} />}
      {state.new === "plan" && may("operate") && <PlanFormCard onClose={close} />}
      <Tabs label="Kind of jobs" tabs={KINDS} value={state.kind} onChange={(kind) => setState({ kind })} />
      {KINDS.map(({ key }) => (
        <TabPanel key={key} of={key} value={state.kind}>
          <div>
            <Choice label="States" options={SHOWN} value={state.show} onChange={(show) => setState({ show })} />
          </div>
          <JobList kind={key} states={STATES[state.show]} />
        </TabPanel>
      ))}
    </View>
  );
}
