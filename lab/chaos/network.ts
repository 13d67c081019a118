/**
 * The network of a run: a namespace for each machine, joined by a hub that can
 * be told, for each ordered pair of machines, to lose, delay or swallow what
 * goes there. This process is a machine itself, the callers'.
 *
 * The hub is a program of ours (`lab/bench/wan`): kernels without netem are
 * common, and it loses the same packets for the same seed.
 *
 * @module
 */

import { findPeer } from "../../tests/support/program/peers.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

/** Of the machine where callers, balancer and name server are. */
export const HOME_ADDRESS = "10.98.0.1";

/** What befalls packets on their way from one machine to another. */
export interface WayRule {
  readonly cut?: boolean;
  /** Probability. */
  readonly loss?: number;
  readonly delayMs?: number;
  /** Longer packets vanish, and no ICMP tells of it. */
  readonly overBytes?: number;
}

/** See the module description. */
export class Network implements AsyncDisposable {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answers: ReadableStreamDefaultReader<string>;
  readonly #machines = new Map<string, string>();
  #unread = "";
  #turn: Promise<void> = Promise.resolve();

  private constructor(private readonly hub: Deno.ChildProcess) {
    this.#writer = hub.stdin.getWriter();
    this.#answers = hub.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  static async open(seed: number): Promise<Network> {
    const hub = new Deno.Command(await findPeer("wan"), {
      args: ["-hub", `-seed=${seed}`],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const network = new Network(hub);
    await network.#say(`end - ${HOME_ADDRESS}`);
    network.#machines.set("home", HOME_ADDRESS);
    return network;
  }

  /** Makes a machine; its name is that of its namespace. */
  async add(machine: string, address: string): Promise<void> {
    await mustEnd(["ip", "netns", "add", machine]);
    await this.#say(`end ${machine} ${address}`);
    this.#machines.set(machine, address);
  }

  addressOf(machine: string): string {
    const address = this.#machines.get(machine);
    if (address === undefined) throw new TypeError(`No machine ${machine}`);
    return address;
  }

  /** The machine at `address`, when there is one. */
  machineAt(address: string): string | undefined {
    for (const [machine, known] of this.#machines) {
      if (known === address) return machine;
    }
    return undefined;
  }

  /** Words in front of a command that is to run on `machine`. */
  prefixOf(machine: string): readonly string[] {
    return ["nsenter", `--net=/run/netns/${machine}`, "--"];
  }

  /** From now on, one way; without a rule all arrives at once. */
  async tell(from: string, to: string, rule: WayRule = {}): Promise<void> {
    const words = [
      ...rule.cut === true ? ["cut"] : [],
      ...rule.loss === undefined ? [] : [`loss=${rule.loss}`],
      ...rule.delayMs === undefined ? [] : [`delay=${rule.delayMs}ms`],
      ...rule.overBytes === undefined ? [] : [`over=${rule.overBytes}`],
    ];
    const ends = [this.addressOf(from), this.addressOf(to)];
    await this.#say(["rule", ...ends, ...words].join(" "));
  }

  /** Both ways. */
  async tellBoth(
    one: string,
    other: string,
    rule: WayRule = {},
  ): Promise<void> {
    await this.tell(one, other, rule);
    await this.tell(other, one, rule);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close();
    await this.hub.status;
    for (const machine of this.#machines.keys()) {
      if (machine !== "home") await mustEnd(["ip", "netns", "del", machine]);
    }
  }

  /** One line and its answer; the next one waits. */
  #say(line: string): Promise<void> {
    const saying = this.#turn.then(async () => {
      await this.#writer.write(new TextEncoder().encode(`${line}\n`));
      const answer = await this.#readLine();
      if (answer !== "ok") throw new Error(`hub: ${line}: ${answer}`);
    });
    this.#turn = saying.catch(() => {});
    return saying;
  }

  async #readLine(): Promise<string> {
    for (;;) {
      const end = this.#unread.indexOf("\n");
      if (end >= 0) {
        const line = this.#unread.slice(0, end);
        this.#unread = this.#unread.slice(end + 1);
        return line;
      }
      const { value, done } = await this.#answers.read();
      if (done) throw new Error("the hub has ended");
      this.#unread += value;
    }
  }
}
