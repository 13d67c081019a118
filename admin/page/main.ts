/**
 * The dashboard in the browser: what `deno task dashboard` bundles. One script
 * for both pages, of those who are let in and of those who are not yet.
 *
 * @module
 */

import { h, render } from "preact";
import { App } from "./app.tsx";
import { logIn, takeCode } from "./login.ts";

const root = document.getElementById("app");
if (root !== null) {
  const code = takeCode();
  // Another link was opened: its role counts from now on.
  if (code !== undefined) {
    logIn(code).then(() => location.replace(location.pathname));
  } else {
    root.textContent = "";
    render(h(App, {}), root);
  }
}
