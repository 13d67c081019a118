/**
 * The files that make a program a service of systemd: the units of
 * `deploy/systemd`, which packages have as well, and beside them what flags
 * change. It does not touch the machine: its caller writes the files and starts
 * the units.
 *
 * @module
 */

import agentUnit from "../../deploy/systemd/tunnel-agent.service" with {
  type: "text",
};
import proxyUnit from "../../deploy/systemd/tunnel-proxy.service" with {
  type: "text",
};
import serverUnit from "../../deploy/systemd/tunnel-server.service" with {
  type: "text",
};
import serverSocket from "../../deploy/systemd/tunnel-server.socket" with {
  type: "text",
};
import users from "../../deploy/systemd/tunnel.conf" with { type: "text" };
import { UsageError } from "../flags/usage_error.ts";

/** What can be a service. */
export const KINDS = ["server", "agent", "proxy"] as const;

export type Kind = typeof KINDS[number];

/** For systemd-sysusers: the user of the units. */
export const USERS = users;

/** Where a package puts the program and its units. */
export const PACKAGED_PROGRAM = "/usr/bin/tunnel";
export const PACKAGED_UNITS = "/usr/lib/systemd/system";

const UNITS: Readonly<Record<Kind, string>> = {
  server: serverUnit,
  agent: agentUnit,
  proxy: proxyUnit,
};

const OWN_UNITS = "/etc/systemd/system";

/** What is made into files. */
export interface ServicePlan {
  readonly kind: Kind;
  /** Its permanent path. */
  readonly program: string;
  /** Whether a package has brought the units. */
  readonly isPackaged: boolean;
  /** Flags of the program, without secrets. */
  readonly words: readonly string[];
  /** Variables that no other user may read. */
  readonly secrets: ReadonlyMap<string, string>;
  /** How long its connections may take to end, when that is not the usual. */
  readonly drainMs?: number | undefined;
  /**
   * The address at which systemd listens for a server's agents; absent: it does
   * not.
   */
  readonly listen?: string;
}

/** One of the files of a service. */
export interface ServiceFile {
  readonly path: string;
  readonly text: string;
  readonly isSecret?: boolean;
}

/** The units of a service, in the order in which they start. */
export function unitsOf({ kind, listen }: ServicePlan): readonly string[] {
  const socket = kind === "server" && listen !== undefined;
  return [...socket ? ["tunnel-server.socket"] : [], `tunnel-${kind}.service`];
}

/** All that there may be of a kind, to be removed. */
export function pathsOf(kind: Kind): readonly string[] {
  const units = [`tunnel-${kind}.service`, `tunnel-${kind}.socket`];
  return [
    ...units.flatMap((unit) => [`${OWN_UNITS}/${unit}`, dropIn(unit)]),
    secretsAt(kind),
  ];
}

/** What is added to a unit; `systemctl edit` has another file there. */
const dropIn = (unit: string) => `${OWN_UNITS}/${unit}.d/install.conf`;

const secretsAt = (kind: Kind) => `/etc/tunnel/${kind}.env`;

/** A process may take so much longer than its connections. */
const END_MS = 10_000;

/**
 * The files of a service.
 *
 * @throws {UsageError} A flag cannot stand in a unit.
 */
export function serviceFiles(plan: ServicePlan): readonly ServiceFile[] {
  const { kind, program, isPackaged, words, secrets, drainMs, listen } = plan;
  const unit = `tunnel-${kind}.service`;
  const text = UNITS[kind].replaceAll(PACKAGED_PROGRAM, program);
  const [, usual = ""] = /^ExecStart=(.*)$/m.exec(text) ?? [];
  // A proxy gets its services from flags, or from the default file.
  const start = kind === "proxy" ? `${program} proxy` : usual;
  const lines = [
    ...words.length === 0
      ? []
      : ["ExecStart=", `ExecStart=${[start, ...words.map(quoted)].join(" ")}`],
    ...drainMs === undefined
      ? []
      : [`TimeoutStopSec=${Math.ceil((drainMs + END_MS) / 1000)}s`],
  ];
  const files: ServiceFile[] = [];
  if (!isPackaged) files.push({ path: `${OWN_UNITS}/${unit}`, text });
  if (lines.length > 0) files.push(addition(unit, "Service", lines));
  if (kind === "server" && listen !== undefined) {
    const socket = "tunnel-server.socket";
    if (!isPackaged) {
      files.push({ path: `${OWN_UNITS}/${socket}`, text: serverSocket });
    }
    const stream = `ListenStream=${listen}`;
    if (!serverSocket.split("\n").includes(stream)) {
      files.push(addition(socket, "Socket", ["ListenStream=", stream]));
    }
  }
  if (secrets.size > 0) {
    const variables = [...secrets].map(([name, value]) =>
      `${name}=${quoted(value).replaceAll("%%", "%").replaceAll("$$", "$")}\n`
    );
    const path = secretsAt(kind);
    files.push({ path, text: variables.join(""), isSecret: true });
  }
  return files;
}

function addition(
  unit: string,
  section: string,
  lines: readonly string[],
): ServiceFile {
  const head = `# By tunnel install.\n[${section}]\n`;
  return { path: dropIn(unit), text: `${head}${lines.join("\n")}\n` };
}

/** In the syntax of systemd.syntax(7), with its variables and specifiers. */
function quoted(word: string): string {
  if (/\p{Cc}/u.test(word)) {
    throw new UsageError(
      `Cannot install with ${
        JSON.stringify(word)
      }: a unit holds no such letter`,
    );
  }
  const escaped = word.replaceAll(/[\\"]/g, "\\$&").replaceAll("%", "%%")
    .replaceAll("$", "$$$$");
  return /^[\w@:,./=+%-]+$/.test(word) ? escaped : `"${escaped}"`;
}
