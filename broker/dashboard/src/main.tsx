// SPDX-License-Identifier: Apache-2.0
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./ui/tokens.css";
import "./ui/base.css";
import { resume } from "./api/session";
import { App } from "./app";
import { match } from "./routes";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

// Both are fetched while React starts: the session, and the code of the view that the address names. The view reports what fails.
void resume();
match(window.location.pathname)
  ?.route.load?.()
  .catch(() => {});
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
