// SPDX-License-Identifier: Apache-2.0
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./ui/tokens.css";
import "./ui/base.css";
import { resume } from "./api/session";
import { App } from "./app";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

void resume();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
