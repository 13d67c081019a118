/**
 * The dashboard in the browser: what `deno task dashboard` bundles. One script
 * for both pages: after sign-in and before.
 *
 * @module
 */

import { h, render } from "preact";
import { App } from "./app.tsx";
import { act } from "./ask.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";

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

// Signs the browser in: the code in the fragment of the link that `tunnel
// dashboard` prints becomes a cookie. The fragment is never sent to a server,
// and is removed from the address at once.

const LOGIN = ADMIN_PATHS.session;
/** Against going round in a circle where a browser keeps no cookies. */
const TRIED = "tunnel-tried";

/** The code in the address; it is no longer there. */
function takeCode(): string | undefined {
  const code = /^#code=([0-9a-zA-Z_-]{1,200})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", location.pathname);
  return code;
}

/** @returns Why the sign-in failed. */
async function logIn(code: string): Promise<string | undefined> {
  try {
    await act(LOGIN, { code });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** On the page of a browser that is not signed in yet. */
async function begin(): Promise<void> {
  const code = takeCode();
  if (code === undefined) return await comeBack();
  const problem = await logIn(code);
  if (problem === undefined) return enter();
  document.getElementById("problem")!.textContent = problem;
}

/**
 * A browser that came by a link from another site sent no cookie, and may have
 * one.
 */
async function comeBack(): Promise<void> {
  const { ok } = await fetch(LOGIN);
  if (ok && sessionStorage.getItem(TRIED) === null) return enter();
  sessionStorage.removeItem(TRIED);
}

function enter(): void {
  sessionStorage.setItem(TRIED, "1");
  location.replace(location.pathname);
}

if (document.documentElement.dataset["page"] === "login") {
  begin().catch(() => {
    document.getElementById("problem")!.textContent =
      "The server does not answer";
  });
} else if (globalThis.sessionStorage) sessionStorage.removeItem(TRIED);
