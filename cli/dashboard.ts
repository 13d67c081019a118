/**
 * `tunnel dashboard`: signs a browser in.
 *
 * Attack in mind: every user can read a command line (`/proc/PID/cmdline`), and
 * a sign-in link works for the first client that opens it. So `--open` starts a
 * browser with an address of loopback, which redirects it only if the kernel
 * says that the connection is this user's.
 *
 * @module
 */

import {
  ADMIN_ACTIONS,
  ADMIN_API,
  type LoginAnswer,
  type LoginQuestion,
} from "../proto/admin/api.ts";
import { ASKED_SERVER_FLAGS, askedProgram } from "./flags/admin_flags.ts";
import { flag } from "./flags/flag.ts";
import { askedClient } from "./program/answer_output.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { ofOthers } from "../admin/ask/text_table.ts";
import type { HttpHandler } from "../net/admin/http_port.ts";
import { plain } from "../net/admin/http_endpoints.ts";
import { connectedUser } from "../net/libc/port_owner.ts";
import { listenHttp } from "../net/listen/listeners.ts";
import { portOf } from "../proto/peer/host_port.ts";

const BROWSER = "The browser";

/** See the module description. */
export const DASHBOARD_COMMAND = defineCommand({
  name: "dashboard",
  about: [
    "Asks the server of this machine, or the one that --server names, to let " +
    "one browser in. The link is good once, for a minute; the browser then " +
    "stays signed in for twelve hours, and through restarts of the server.",
    "The dashboard is on the admin port, which is on loopback: from a laptop, " +
    "run this on the server's machine and carry the port over with ssh -L, as " +
    "docs/observability.md shows.",
  ],
  examples: [
    "tunnel dashboard",
    "tunnel dashboard --open",
    "tunnel dashboard --role view",
  ],
  rights: "programs",
  flags: {
    ...ASKED_SERVER_FLAGS,
    "open": flag.boolean(false, {
      group: BROWSER,
      help: "Open it in the browser of this machine (xdg-open).",
    }),
    "role": flag.choice(["operate", "view"], "operate", {
      group: BROWSER,
      help: "What the browser may do: view looks, operate may also drain, " +
        "approve, revoke and kill. Never more than you may do yourself.",
    }),
  },
  async run({ values, given }, context) {
    const asked = askedProgram(values, given, context);
    using client = askedClient(asked, context);
    const question: LoginQuestion = { role: values["role"] };
    const { url } = await client.post<LoginAnswer>(
      `${ADMIN_API}/${ADMIN_ACTIONS.logins}`,
      question,
    );
    context.print(`${ofOthers(url)}\n`);
    const { host, port } = new URL(url);
    context.printError(
      `Good once, for a minute; the browser may then ${values["role"]} for ` +
        `12 hours. From elsewhere, before: ssh -L ${port}:${host} ` +
        "and this machine's name\n",
    );
    const isOpened = () =>
      visit(url, { open: hasOpened, users: usersOf(context) });
    if (values["open"] && !(/^https?:/.test(url) && await isOpened())) {
      context.printError(
        "Cannot open a browser here: xdg-open does not run or found none, " +
          "or none of yours came; open the link yourself\n",
      );
    }
  },
});

/** This user, or the user who has become root by sudo: the browser is his. */
function usersOf({ environment }: Pick<CommandContext, "environment">) {
  const before = Number(environment("SUDO_UID") || NaN);
  return [Deno.uid() ?? NaN, ...Deno.uid() === 0 ? [before] : []];
}

async function hasOpened(url: string): Promise<boolean> {
  try {
    const { success } = await new Deno.Command("xdg-open", {
      args: [url],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    return success;
  } catch {
    return false;
  }
}

/** A browser that has not come by then does not. */
const VISIT_MS = 20_000;

/** Its tools from the machine. */
export interface VisitOptions {
  /** Starts a browser. @returns Whether it could be started. */
  readonly open: (url: string) => Promise<boolean>;
  /** Whose browsers are sent on. */
  readonly users: readonly number[];
  readonly timeoutMs?: number;
}

/** @returns Whether a browser came and was sent to `url`. */
export async function visit(
  url: string,
  { open, users, timeoutMs = VISIT_MS }: VisitOptions,
): Promise<boolean> {
  const came = Promise.withResolvers<boolean>();
  const answer: HttpHandler = ({ method, signal, url: asked }, peer) => {
    const user = connectedUser(portOf(peer.remoteAddress), listener.port);
    if (user === undefined || !users.includes(user)) {
      return plain(403, "This is for another user\n");
    }
    const isVisit = method === "GET" && new URL(asked).pathname === "/";
    if (!isVisit) return plain(404, "404 page not found\n");
    // It has the answer when it is gone.
    signal.addEventListener("abort", () => came.resolve(true));
    return new Response(null, {
      status: 303,
      headers: {
        "location": url,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
      },
    });
  };
  const listener = listenHttp({ hostname: "127.0.0.1", port: 0 }, answer);
  const late = setTimeout(() => came.resolve(false), timeoutMs);
  try {
    return await open(`http://${listener.address}/`) && await came.promise;
  } finally {
    clearTimeout(late);
    listener.close();
  }
}
