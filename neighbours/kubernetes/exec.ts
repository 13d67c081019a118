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
import type { Credential } from "./access.ts";
import {
  DocumentMap,
  FieldError,
} from "../../platform/documents/document_map.ts";
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

/** What a kubeconfig says about a plugin. */
export interface ExecPlugin {
  readonly apiVersion: typeof VERSIONS[number];
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  readonly wantsCluster: boolean;
}

/**
 * Reads a user's `exec`.
 *
 * @param folder A command with a slash in it starts there, unless at `/`.
 * @throws {FieldError}
 */
export function readExecPlugin(exec: DocumentMap, folder: string): ExecPlugin {
  const apiVersion = exec.text("apiVersion") ?? "";
  const known = VERSIONS.find((version) => version === apiVersion);
  if (known === undefined) {
    exec.refuse(
      "apiVersion",
      `saw "${apiVersion}", wanted ${VERSIONS.join(" or ")}; update the plugin`,
    );
  }
  if (exec.text("interactiveMode") === "Always") {
    exec.refuse(
      "interactiveMode",
      "saw Always, but there is no person to ask; log in by a token or a " +
        "certificate",
    );
  }
  const command = exec.text("command") || exec.refuse("command", "it is empty");
  const isRelativePath = command.includes("/") && !command.startsWith("/");
  return {
    apiVersion: known,
    command: isRelativePath ? `${folder}/${command}` : command,
    args: (exec.texts("args") ?? []).map(([text]) => text),
    env: Object.fromEntries(
      exec.list("env").map(([item, place]) => {
        const fields = new DocumentMap(item, place);
        return [fields.text("name") ?? "", fields.text("value") ?? ""];
      }),
    ),
    installHint: exec.text("installHint") ?? "",
    wantsCluster: exec.flag("provideClusterInfo") ?? false,
  };
}

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
    const { command, args, env, installHint } = this.plugin;
    let child: Deno.ChildProcess;
    try {
      child = new Deno.Command(command, {
        args: [...args],
        env: { ...env, KUBERNETES_EXEC_INFO: this.#info() },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
    } catch (error) {
      throw this.#problem(
        `${messageOf(error)}${installHint && `; ${installHint}`}`,
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
    const { apiVersion, wantsCluster } = this.plugin;
    const cluster = wantsCluster ? { cluster: this.clusterOf() } : {};
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
      return readAnswer(new DocumentMap(value, []), this.plugin.apiVersion);
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

/** @throws {FieldError} */
function readAnswer(credential: DocumentMap, wanted: string): Answer {
  const version = credential.text("apiVersion") ?? "";
  if (version !== wanted) {
    credential.refuse("apiVersion", `saw "${version}", wanted ${wanted}`);
  }
  const status = credential.map("status") ??
    credential.refuse("status", "it is missing");
  const token = status.text("token") ?? "";
  const cert = status.text("clientCertificateData") ?? "";
  const key = status.text("clientKeyData") ?? "";
  if ((cert === "") !== (key === "")) {
    credential.refuse("status", "it has only one of a certificate and its key");
  }
  if (token === "" && cert === "") {
    credential.refuse("status", "it holds neither a token nor a certificate");
  }
  const expires = status.text("expirationTimestamp") ?? "";
  const expiresMs = expires === "" ? Infinity : Date.parse(expires);
  if (Number.isNaN(expiresMs)) {
    status.refuse("expirationTimestamp", `saw "${expires}", wanted a time`);
  }
  return {
    expiresMs,
    credential: {
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      ...(cert === "" ? {} : { keyPair: { cert, key } }),
    },
  };
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
