/**
 * Credentials from a program that a kubeconfig names: exec plugins of
 * `client.authentication.k8s.io/v1` and `v1beta1`, such as the clouds' and
 * `kubelogin`.
 *
 * A plugin that would ask a person is run without a terminal and has to do
 * without.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { type Credential, credentialOf } from "./access.ts";
import { FieldError } from "../../platform/documents/field_error.ts";
import {
  as,
  FLAG,
  list,
  map,
  type MeaningOf,
  readShape,
  type Shape,
  TEXT,
} from "../../platform/documents/shape.ts";
import { NeighbourConfigError } from "../tls_files.ts";

/** A plugin may fetch a token from far away; kubectl has no limit. */
export const EXEC_TIMEOUT_MS = 60_000;

/** Credentials are a few kilobytes. */
export const EXEC_OUTPUT_BYTES_MAX = 1024 * 1024;

/** How long before their end credentials count as ended: clocks differ. */
export const EXPIRY_MARGIN_MS = 10_000;

/** How much of a plugin's output is quoted when it fails. */
const QUOTE_LENGTH_MAX = 400;

const VERSIONS = [
  "client.authentication.k8s.io/v1",
  "client.authentication.k8s.io/v1beta1",
] as const;

const UPDATE = `wanted ${VERSIONS.join(" or ")}; update the plugin`;

/** A user's `exec`. */
export const EXEC_PLUGIN = map({
  apiVersion: as(
    TEXT,
    (seen, at) =>
      VERSIONS.find((version) => version === seen) ??
        at.say(`saw "${seen}", ${UPDATE}`),
  ),
  args: list(TEXT),
  command: as(TEXT, (command, at) => command || at.say("it is empty")),
  env: list(map({ name: TEXT, value: TEXT }, { isOpen: true })),
  installHint: TEXT,
  interactiveMode: as(TEXT, (mode, at) =>
    mode !== "Always" ? mode : at.say(
      "saw Always, but there is no person to ask; log in by a token or a " +
        "certificate",
    )),
  provideClusterInfo: FLAG,
}, {
  isOpen: true,
  required: { apiVersion: `saw nothing, ${UPDATE}`, command: "it is empty" },
});

export type ExecPlugin = MeaningOf<typeof EXEC_PLUGIN>;

/** Runs a plugin when its last answer has expired; never twice at a time. */
export class ExecCredentials {
  #known: Answer | undefined;
  #running: Promise<Answer> | undefined;

  /** @param clusterOf `spec.cluster` for a plugin that wants it. */
  constructor(
    private readonly plugin: ExecPlugin,
    private readonly clusterOf: () => unknown,
  ) {}

  /** @throws {NeighbourConfigError} When the plugin fails or makes no sense. */
  async current(): Promise<Credential> {
    const known = this.#known;
    const endMs = (known?.expiresMs ?? 0) - EXPIRY_MARGIN_MS;
    if (known !== undefined && Date.now() < endMs) {
      return known.credential;
    }
    this.#running ??= this.#run().finally(() => this.#running = undefined);
    this.#known = await this.#running;
    return this.#known.credential;
  }

  /** The next look runs the plugin. */
  expire(): void {
    this.#known = undefined;
  }

  async #run(): Promise<Answer> {
    const { command, args = [], env = [], installHint } = this.plugin;
    const own = env.map(({ name = "", value = "" }) => [name, value]);
    let child: Deno.ChildProcess;
    try {
      child = new Deno.Command(command, {
        args: [...args],
        env: { ...Object.fromEntries(own), KUBERNETES_EXEC_INFO: this.#info() },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
    } catch (error) {
      throw this.#problem(
        `${messageOf(error)}${installHint ? `; ${installHint}` : ""}`,
        error,
      );
    }
    const late = () => {
      // Its child processes may keep its pipes open, so they are not waited
      // for.
      child.kill("SIGKILL");
      return this.#problem(`no answer in ${EXEC_TIMEOUT_MS} ms`);
    };
    const [stdout, stderr, { code }] = await within(
      { timers: systemTimers, timeoutMs: EXEC_TIMEOUT_MS, late },
      Promise.all([gather(child.stdout), gather(child.stderr), child.status]),
    );
    if (code === 0) return this.#read(stdout);
    const said = stderr.trim().slice(-QUOTE_LENGTH_MAX);
    throw this.#problem(`it ended with ${code}${said && `: ${said}`}`);
  }

  #info(): string {
    const { apiVersion, provideClusterInfo } = this.plugin;
    const cluster = provideClusterInfo ? { cluster: this.clusterOf() } : {};
    const spec = { interactive: false, ...cluster };
    return JSON.stringify({ kind: "ExecCredential", apiVersion, spec });
  }

  #read(stdout: string): Answer {
    let value: unknown;
    try {
      value = JSON.parse(stdout);
    } catch (error) {
      throw this.#problem("it printed no JSON", error);
    }
    try {
      return readShape(answerOf(this.plugin), value).status;
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      throw this.#problem(`of what it printed, ${error.message}`, error);
    }
  }

  #problem(what: string, cause?: unknown): NeighbourConfigError {
    return new NeighbourConfigError(
      `Cannot log in to the API server by ${this.plugin.command}: ${what}`,
      { cause },
    );
  }
}

interface Answer {
  readonly credential: Credential;
  /** Since 1970; infinite when it said none. */
  readonly expiresMs: number;
}

const STATUS: Shape<Answer> = as(
  map({
    token: TEXT,
    clientCertificateData: TEXT,
    clientKeyData: TEXT,
    expirationTimestamp: as(TEXT, (text, at) => {
      const ms = text === "" ? Infinity : Date.parse(text);
      return Number.isNaN(ms) ? at.say(`saw "${text}", wanted a time`) : ms;
    }),
  }, { isOpen: true }),
  (status, at) => {
    const { token, expirationTimestamp: expiresMs = Infinity } = status;
    const { clientCertificateData: cert, clientKeyData: key } = status;
    if (!cert !== !key) {
      return at.say("it has only one of a certificate and its key");
    }
    if (!token && !cert) {
      return at.say("it holds neither a token nor a certificate");
    }
    return {
      expiresMs,
      credential: credentialOf(token, { cert, key }),
    };
  },
);

/** What a plugin prints, in the version that it was asked in. */
function answerOf({ apiVersion: wanted }: ExecPlugin) {
  return map({
    apiVersion: as(
      TEXT,
      (seen, at) =>
        seen === wanted ? seen : at.say(`saw "${seen}", wanted ${wanted}`),
    ),
    status: STATUS,
  }, {
    isOpen: true,
    required: {
      apiVersion: `saw nothing, wanted ${wanted}`,
      status: "it is missing",
    },
  });
}

/** The useful part of the output; the rest is read and dropped. */
async function gather(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    if (text.length < EXEC_OUTPUT_BYTES_MAX) {
      text += decoder.decode(chunk, { stream: true });
    }
  }
  return text;
}
