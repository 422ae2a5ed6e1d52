// SPDX-License-Identifier: Apache-2.0
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./ui/tokens.css";
import "./ui/base.css";
import { prefetch } from "./api/cache";
import { resume } from "./api/session";
import { App } from "./app";
import { match } from "./routes";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

// On their way while React starts: who this is, and the code and the first answers of the view that the address names. What fails, the
// view says.
void resume();
const first = match(window.location.pathname)?.route;
first?.load().catch(() => {});
first?.asks?.forEach(prefetch);
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
