/**
 * Clients of discovery as scripts: what each asks and answers, a step a line, and
 * after `->` what it is sent for that. A script without `->` at a step is sent
 * nothing there; `|` stands between responses. What stands in `(…)` is said in SotW
 * only, and what stands in `[…]` in Delta only.
 *
 * ```
 * # sotw world: dropping names is not answered
 * ask endpoints a b -> endpoints a=1 b=1
 * ask endpoints b
 * ```
 *
 * Behind the modes stands how the client begins: with nothing, or by a name of
 * `openings`, whose steps are taken first. Steps are `see KIND NAME=VERSION …` (the
 * kinds that it does not name stay), `ask KIND NAME … -UNSUBSCRIBED`, `ack KIND`,
 * `nack KIND "MESSAGE"`, `settle`, `pass MS`, `due MS`, and `status KIND FIELD=JSON …`, or `stream` for KIND.
 * Requests may say `nonce=`, `version=`, `error=""` and `has=NAME=VERSION,…`.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import {
  type ClientProfile,
  PLAIN_PROFILE,
} from "../../../services/discovery/subscriptions/kind_subscription.ts";
import {
  type Parts,
  type RequestParts,
  ScriptedSubscriber,
  WORLD,
} from "./scripted_subscriber.ts";

/** How clients begin, beside `world`: a client that knows of {@linkcode WORLD}. */
export type Openings = Readonly<Record<string, string>>;

const MODES: Readonly<Record<string, readonly DiscoveryMode[]>> = {
  sotw: ["sotw"],
  delta: ["delta"],
  both: ["sotw", "delta"],
};

/** Registers a test for each script, in each of its modes. */
export function transcripts(
  text: string,
  openings: Openings = {},
  profile: Partial<ClientProfile> = {},
): void {
  for (const script of text.split(/^# /m).slice(1)) {
    const [title = "", ...steps] = script.trim().split("\n");
    const [, modes = "", opening, name] = /^(\w+)(?: (\w+))?: (.*)$/.exec(
      title,
    )!;
    for (const mode of MODES[modes]!) {
      Deno.test(`${mode}: ${name}`, () => {
        const client = new Transcript(mode, { ...PLAIN_PROFILE, ...profile });
        if (opening === "world") client.see(WORLD);
        else client.open(openings[opening ?? ""] ?? "");
        client.run(steps);
      });
    }
  }
}

/** A client, and the steps that it takes. */
class Transcript {
  readonly #client: ScriptedSubscriber;
  #world: Parts = {};

  constructor(readonly mode: DiscoveryMode, profile: ClientProfile) {
    this.#client = new ScriptedSubscriber(mode);
    this.#client.state.profile = profile;
  }

  see(world: Parts): readonly string[] {
    this.#world = { ...this.#world, ...world };
    return this.#client.see(this.#world);
  }

  /** Whatever it is sent for that. */
  open(steps: string): void {
    for (const step of stepsIn(steps.split("\n"))) this.#take(step);
  }

  run(lines: readonly string[]): void {
    for (const line of stepsIn(lines)) {
      const [step = "", wanted = ""] = saidIn(this.mode, line).split(
        / ->(?: |$)/,
      );
      assertEquals(this.#take(step).join(" | "), wanted, line);
    }
  }

  #take(step: string): readonly string[] {
    const [verb, ...words] = step.match(/(?:"[^"]*"|[^\s"])+/g)!;
    const client = this.#client;
    const kind = words[0] as ResourceKind;
    const { names, message, parts } = requestOf(words.slice(1));
    switch (verb) {
      case "see":
        return this.see(partsOf(words));
      case "ask":
        return client.ask(kind, names, parts);
      case "ack":
        return client.ack(kind, parts);
      case "nack":
        return client.nack(kind, message, parts);
      case "settle":
        return client.settle();
      case "pass":
        return client.pass(Number(kind));
      case "due":
        assertEquals(client.state.dueMs, Number(kind), step);
        return [];
      case "status":
        this.#check(kind, words.slice(1));
        return [];
    }
    throw new TypeError(`There is no such step: ${step}`);
  }

  #check(kind: ResourceKind | "stream", wanted: readonly string[]): void {
    const { state } = this.#client;
    const status = kind === "stream"
      ? state.status
      : this.#client.statusOf(kind);
    for (const word of wanted) {
      const [path = "", ...rest] = word.split("=");
      let seen: unknown = status;
      for (const field of path.split(".")) {
        seen = new Map(Object.entries(Object(seen))).get(field);
      }
      assertEquals(JSON.stringify(seen) ?? "undefined", rest.join("="), word);
    }
  }
}

/** `cluster a=2 (b=1) [-c]`, as it is in one mode. */
function saidIn(mode: DiscoveryMode, line: string): string {
  if (line.startsWith("status")) return line;
  return mode === "sotw"
    ? line.replace(/ ?\[[^\]]*\]/g, "").replace(/[()]/g, "")
    : line.replace(/ ?\([^)]*\)/g, "").replace(/[[\]]/g, "");
}

function stepsIn(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("//"));
}

/** `cluster a=1 b=1 listener -`: by kind; `-` is none. */
function partsOf(words: readonly string[]): Parts {
  const parts: Partial<Record<ResourceKind, Record<string, string>>> = {};
  let of: Record<string, string> = {};
  for (const word of words) {
    const kind = RESOURCE_KINDS.find((kind) => kind === word);
    if (kind !== undefined) parts[kind] = of = {};
    else if (word !== "-") {
      const [name = "", ...version] = word.split("=");
      of[name] = version.join("=");
    }
  }
  return parts;
}

function requestOf(words: readonly string[]): {
  readonly names: readonly string[];
  readonly message: string;
  readonly parts: RequestParts;
} {
  const names: string[] = [];
  const unsubscribe: string[] = [];
  let message = "";
  let parts: RequestParts = {};
  for (const word of words) {
    const [, field, value = ""] =
      /^(nonce|version|error|has)=(.*)$/.exec(word) ??
        [];
    if (field === "has") {
      parts = { ...parts, initial: initialOf(value) };
    } else if (field !== undefined) {
      parts = { ...parts, [field]: unquoted(value) };
    } else if (word.startsWith('"')) message = unquoted(word);
    else if (word.startsWith("-")) unsubscribe.push(word.slice(1));
    else names.push(word);
  }
  if (unsubscribe.length > 0) parts = { ...parts, unsubscribe };
  return { names, message, parts };
}

function initialOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(",").map((one) => one.split("=") as [string, string]),
  );
}

function unquoted(text: string): string {
  return text.replace(/^"(.*)"$/, "$1");
}
