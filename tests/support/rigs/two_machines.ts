/**
 * Two machines with a cable between them: network namespaces of this test, with
 * the addresses that a workspace's certificates are for. Needs root.
 *
 * @module
 */

/** The server's address. */
export const SERVER_HOST = "10.99.0.1";

/** The agent's, at first. */
const AGENT_HOST = "10.99.0.2";

/** Why there can be none here; `undefined`: there can. */
export function whyNoMachines(): string | undefined {
  if (Deno.build.os !== "linux") return "network namespaces are Linux's";
  return Deno.uid() === 0 ? undefined : "network namespaces need root";
}

/** See the module description. */
export class TwoMachines implements AsyncDisposable {
  readonly #server: string;
  readonly #agent: string;

  private constructor(readonly name: string) {
    this.#server = `${name}s`;
    this.#agent = `${name}a`;
  }

  static async make(): Promise<TwoMachines> {
    const two = new TwoMachines(`tl${crypto.randomUUID().slice(0, 8)}`);
    for (const machine of [two.#server, two.#agent]) {
      await ip("netns", "add", machine);
      await ip("-n", machine, "link", "set", "lo", "up");
    }
    await ip(
      ...["link", "add", "cable", "netns", two.#server, "type", "veth"],
      ...["peer", "name", "cable", "netns", two.#agent],
    );
    await two.address("server", "add", SERVER_HOST);
    await two.address("agent", "add", AGENT_HOST);
    for (const end of ["server", "agent"] as const) await two.cable(end, "up");
    return two;
  }

  /** Words in front of a command that runs on it. */
  on(end: "server" | "agent"): string[] {
    return ["ip", "netns", "exec", this.#of(end)];
  }

  async cable(end: "server" | "agent", state: "up" | "down"): Promise<void> {
    await ip("-n", this.#of(end), "link", "set", "cable", state);
  }

  async address(
    end: "server" | "agent",
    change: "add" | "del",
    host: string,
  ): Promise<void> {
    const machine = this.#of(end);
    await ip("-n", machine, "addr", change, `${host}/24`, "dev", "cable");
  }

  /** The agent's machine is in another network, as after roaming. */
  async readdress(host: string): Promise<void> {
    await this.address("agent", "del", AGENT_HOST);
    await this.address("agent", "add", host);
  }

  #of(end: "server" | "agent"): string {
    return end === "server" ? this.#server : this.#agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of [this.#server, this.#agent]) {
      await ip("netns", "del", machine);
    }
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await new Deno.Command("ip", { args: [...args] })
    .output();
  if (code === 0) return;
  const words = new TextDecoder().decode(stderr).trim();
  throw new Error(`ip ${args.join(" ")}: ${words}`);
}
