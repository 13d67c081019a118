/**
 * The content of a support bundle, file by file. Secrets are removed from every
 * file at one place, just before it is written.
 *
 * @module
 */

import type { AdminClient } from "../../admin/ask/admin_client.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import { hideSecrets, withoutSecrets } from "../flags/secrets.ts";
import { versionText } from "../program/version.ts";
import { lastLines, listedFiles, machineFacts } from "./machine_facts.ts";

/** A program that is asked. */
export interface BundledProgram {
  readonly name: "server" | "agent" | "proxy";
  readonly client: Pick<AdminClient, "get" | "close">;
  readonly stateDirectory: string;
  /** Absent: it could not be said. */
  readonly flags?: (() => unknown) | undefined;
  /** What `tunnel doctor` finds. */
  readonly doctor?: (() => Promise<string>) | undefined;
}

/** What a bundle is made of. */
export interface BundleSources {
  readonly programs: readonly BundledProgram[];
  /** Files with log lines. */
  readonly logs: readonly string[];
  readonly isAnonymous: boolean;
  /** The text at a URL; for metrics. */
  readonly fetchText: (url: string) => Promise<string>;
}

/** Of each log; a day of a busy server is more. */
const LOG_BYTES_MAX = 1024 * 1024;

const ASKED = [
  "status",
  "nodes",
  "conduits",
  "events",
  "services",
  "discovery",
  "certificates",
  "config",
] as const;

const README =
  `A support bundle of tunnel. It has no keys, tokens or passwords, and of the
state directories only names, modes and sizes of files. Look through it before
you pass it on: names of nodes and targets are in it, unless it was made with
--anonymous. What could not be had:
`;

/** See the module description. */
export class Bundle {
  readonly #pseudonyms: Pseudonyms | undefined;
  readonly #lacking: string[] = [];

  /** @param folder Where all of them are. */
  constructor(
    private readonly folder: string,
    private readonly sources: BundleSources,
  ) {
    if (sources.isAnonymous) this.#pseudonyms = new Pseudonyms();
  }

  async *files(): AsyncGenerator<TarFile> {
    const { programs, logs } = this.sources;
    // Names are known only when all was asked, and hidden in all files.
    const answers = await Promise.all(programs.map((one) => this.#ask(one)));
    const machine = machineFacts();
    this.#pseudonyms?.learn(answers.map((one) => [...one.values()]));
    this.#pseudonyms?.learn(machine);
    yield this.#file("version.json", versionText("json"));
    yield this.#json("machine.json", machine);
    for (const [at, program] of programs.entries()) {
      yield* this.#program(program, answers[at]!);
    }
    for (const [at, path] of logs.entries()) {
      const text = await this.#have(path, () => lastLines(path, LOG_BYTES_MAX));
      if (text !== undefined) yield this.#file(`log-${at + 1}.txt`, text);
    }
    yield this.#file(
      "README.txt",
      README + this.#lacking.map((line) => `- ${line}\n`).join(""),
    );
  }

  async #ask({ name, client }: BundledProgram): Promise<Map<string, unknown>> {
    const answers = new Map<string, unknown>();
    for (const what of ASKED) {
      const answer = await this.#have(
        `${name}: ${what}`,
        () => client.get<unknown>(ADMIN_PATHS[what]),
      );
      if (answer !== undefined) answers.set(what, answer);
      // A program that does not answer this answers no other question.
      else if (what === "status") break;
    }
    return answers;
  }

  async *#program(
    program: BundledProgram,
    answers: ReadonlyMap<string, unknown>,
  ): AsyncGenerator<TarFile> {
    const { name, stateDirectory, flags, doctor } = program;
    for (const [what, answer] of answers) {
      yield this.#json(`${name}/${what}.json`, answer);
    }
    const health = healthOf(answers.get("status"));
    if (health !== undefined) {
      const url = `http://${health}/metrics`;
      const text = await this.#have(
        `${name}: metrics`,
        () => this.sources.fetchText(url),
      );
      if (text !== undefined) yield this.#file(`${name}/metrics.txt`, text);
    }
    const files = await this.#have(
      `${name}: ${stateDirectory}`,
      () => listedFiles(stateDirectory),
    );
    if (files !== undefined) {
      yield this.#json(`${name}/state-files.json`, files);
    }
    const printed = flags && await this.#have(`${name}: flags`, flags);
    if (printed !== undefined) yield this.#json(`${name}/flags.json`, printed);
    const found = doctor && await this.#have(`${name}: doctor`, doctor);
    if (found !== undefined) yield this.#file(`${name}/doctor.txt`, found);
  }

  async #have<T>(
    what: string,
    get: () => T | Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await get();
    } catch (error) {
      this.#lacking.push(`${what}: ${messageOf(error).replaceAll("\n", " ")}`);
      return undefined;
    }
  }

  #json(name: string, value: unknown): TarFile {
    return this.#file(name, `${JSON.stringify(value, hideSecrets, 1)}\n`);
  }

  /** The only way into a bundle. */
  #file(name: string, text: string): TarFile {
    const safe = withoutSecrets(text);
    const shown = this.#pseudonyms?.text(safe) ?? safe;
    const content = new TextEncoder().encode(shown);
    return { name: `${this.folder}/${name}`, content };
  }
}

/** `HOST:PORT` to connect to. */
function healthOf(status: unknown): string | undefined {
  const text = Object(Object(Object(status).program).addresses).health;
  if (typeof text !== "string") return undefined;
  const port = /:(\d{1,5})$/.exec(text)?.[1];
  const host = text.slice(0, -(port?.length ?? 0) - 1);
  if (port === undefined) return undefined;
  const isWild = ["", "0.0.0.0", "[::]", "*"].includes(host);
  return `${isWild ? "127.0.0.1" : host}:${port}`;
}

// Writes a tar archive: POSIX ustar, regular files only.

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
const ENCODER = new TextEncoder();

/** One file. */
interface TarFile {
  /** In ASCII, with slashes; at most 100 bytes. */
  readonly name: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

/** The bytes of an archive, file by file. */
export async function* tarBytes(
  files: AsyncIterable<TarFile>,
  modifiedMs: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const { name, content } of files) {
    yield header(name, content.length, modifiedMs);
    yield content;
    const rest = content.length % BLOCK_BYTES;
    if (rest > 0) yield new Uint8Array(BLOCK_BYTES - rest);
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function header(
  name: string,
  bytes: number,
  modifiedMs: number,
): Uint8Array<ArrayBuffer> {
  const isPlain = /^[\w./-]+$/.test(name) && name.length <= NAME_BYTES_MAX;
  if (!isPlain) throw new TypeError(`Cannot call a file in an archive ${name}`);
  const block = new Uint8Array(BLOCK_BYTES);
  const put = (at: number, text: string) => block.set(ENCODER.encode(text), at);
  const octal = (value: number, digits: number) =>
    value.toString(8).padStart(digits, "0");
  put(0, name);
  put(100, octal(0o600, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes, 11));
  put(136, octal(Math.floor(modifiedMs / 1_000), 11));
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${octal(sum, 6)}\0 `);
  return block;
}

/** Fields whose texts are names of nodes, users, services, addresses. */
const NAMES: ReadonlySet<string> = new Set([
  ...["name", "node", "nodes", "agent", "agents", "peer", "peers", "id"],
  ...["server", "servers", "client", "clients", "caller", "who", "as", "from"],
  ...["host", "hostname", "address", "target", "dialed", "remoteAddress"],
  ...["commonName", "organization", "service", "services", "joinedAs"],
]);

/** Values that are the same everywhere reveal nothing. */
const COMMON: ReadonlySet<string> = new Set([
  ...["server", "agent", "proxy", "local", "localhost", "default", "tcp"],
  ...["udp", "unix", "host", "node", "true", "false", "health", "admin"],
]);

/** IPv4, and IPv6 with at least two colons; loopback and wildcards stay. */
const ADDRESS =
  /\b(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w:])(?:[0-9a-f]{1,4}:|:){2,7}[0-9a-f]{0,4}(?![\w:])/gi;

/** Shorter ones are parts of other words. */
const NAME_LENGTH_MIN = 2;

/** Names beyond it stay out of free text; there they would take too long. */
const NAMES_MAX = 20_000;

/** The names of one bundle. */
export class Pseudonyms {
  readonly #names = new Map<string, string>();
  readonly #addresses = new Map<string, string>();
  #form: RegExp | undefined;

  /** Learns the names of a JSON value, before any text is written. */
  learn(value: unknown, key = ""): void {
    if (Array.isArray(value)) {
      for (const item of value) this.learn(item, key);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, item] of Object.entries(value)) this.learn(item, name);
    } else if (typeof value === "string" && NAMES.has(key)) {
      this.#learnName(value);
    }
  }

  /** A text with other names in it. */
  text(text: string): string {
    const named = this.#names.size === 0
      ? text
      : text.replaceAll(this.#pattern(), (name) => this.#names.get(name)!);
    return named.replaceAll(ADDRESS, (address) => {
      if (/^(?:127\.|0\.0\.0\.0$|::1?$)/.test(address)) return address;
      const known = this.#addresses.get(address);
      if (known !== undefined) return known;
      const other = `address-${this.#addresses.size + 1}`;
      this.#addresses.set(address, other);
      return other;
    });
  }

  #learnName(given: string): void {
    // The port of `HOST:PORT` may stay.
    const name = given.replace(/:\d{1,5}$/, "");
    const isOrdinary = name.length < NAME_LENGTH_MIN ||
      /^[\d.:]+$/.test(name) ||
      COMMON.has(name.toLowerCase()) || this.#names.has(name);
    if (isOrdinary || this.#names.size >= NAMES_MAX) return;
    this.#names.set(name, `name-${this.#names.size + 1}`);
    this.#form = undefined;
  }

  #pattern(): RegExp {
    return this.#form ??= new RegExp(
      "(?<![\\w])(?:" +
        [...this.#names.keys()]
          // The longest first: one name may be the beginning of another.
          .sort((a, b) => b.length - a.length)
          .map((name) => RegExp.escape(name))
          .join("|") +
        ")(?![\\w])",
      "g",
    );
  }
}
