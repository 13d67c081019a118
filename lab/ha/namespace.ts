/**
 * A network namespace of its own, joined to this one by a pair of interfaces
 * that can be cut in one direction.
 *
 * @module
 */

/** See the module description. */
export class Namespace implements AsyncDisposable {
  private constructor(
    private readonly name: string,
    private readonly network: string,
  ) {}

  /** Whether this user may make one. */
  static async isPossible(): Promise<boolean> {
    const name = nameOf(Deno.pid);
    if (!await ip("netns", "add", name)) return false;
    return await ip("netns", "del", name);
  }

  static async make(): Promise<Namespace> {
    // From TEST-NET-1, by process: two runs may be beside each other.
    const network = `192.0.2.${(Deno.pid % 60) * 4}`;
    const namespace = new Namespace(nameOf(Deno.pid), network);
    const name = namespace.name;
    const [here, there] = [`${name}o`, `${name}i`];
    for (
      const words of [
        ["netns", "add", name],
        ["link", "add", here, "type", "veth", "peer", "name", there],
        ["link", "set", there, "netns", name],
        ["addr", "add", `${namespace.outside}/30`, "dev", here],
        ["link", "set", here, "up"],
        ["-n", name, "addr", "add", `${namespace.inside}/30`, "dev", there],
        ["-n", name, "link", "set", there, "up"],
        ["-n", name, "link", "set", "lo", "up"],
      ]
    ) await must(words);
    return namespace;
  }

  /** Our address on the way to it. */
  get outside(): string {
    return addressAt(this.network, 1);
  }

  get inside(): string {
    return addressAt(this.network, 2);
  }

  /** Words before a command that runs inside. */
  get prefix(): readonly string[] {
    return ["ip", "netns", "exec", this.name];
  }

  /** Nothing goes in this direction any more, and nobody is told. */
  async cut(direction: "outwards" | "inwards"): Promise<void> {
    await must(
      direction === "outwards"
        ? ["-n", this.name, "route", "add", "blackhole", this.outside]
        : ["route", "add", "blackhole", this.inside],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await ip("route", "del", "blackhole", this.inside);
    await ip("link", "del", `${this.name}o`);
    await ip("netns", "del", this.name);
  }
}

function nameOf(pid: number): string {
  return `tha${pid}`;
}

function addressAt(network: string, host: number): string {
  const parts = network.split(".");
  return [...parts.slice(0, 3), Number(parts[3]) + host].join(".");
}

async function must(words: readonly string[]): Promise<void> {
  if (!await ip(...words)) throw new Error(`ip ${words.join(" ")} has failed`);
}

async function ip(...words: readonly string[]): Promise<boolean> {
  const { success } = await new Deno.Command("ip", {
    args: [...words],
    stdout: "null",
    stderr: "null",
  }).output().catch(() => ({ success: false }));
  return success;
}
