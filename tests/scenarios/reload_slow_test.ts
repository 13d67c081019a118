import { assertEquals } from "@std/assert";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import {
  type CertificatePair,
  ThrowawayCa,
} from "../support/certificates/throwaway_ca.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { Prng } from "../support/memory/prng.ts";
import {
  portOf,
  Tunnel,
  type TunnelAgent,
} from "../support/rigs/tunnel_harness.ts";
import { arrivals } from "../support/peers/sockets.ts";

// Everything that comes from files changes a hundred times, authorities too,
// while conduits carry bytes that are compared: none may notice.

const RELOADS = 100;
const CONDUITS_PER_PROTOCOL = 6;
const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];

Deno.test("a hundred reloads under load drop no conduit", async () => {
  await using stage = await Stage.open();
  const loads = await stage.load();
  for (let round = 1; round <= RELOADS; round++) {
    await stage.reload(round);
    await stage.tryNewcomers(round);
    assertEquals(loads.filter(({ end }) => end !== undefined), []);
  }
  for (const load of loads) {
    assertEquals(await load.finish(), { kind: "clean" });
    assertEquals(load.receivedBytes, load.sentBytes);
  }
  const { tunnel, agent } = stage;
  for (const { lines } of [tunnel.log, agent.log]) {
    assertEquals(lines.filter(({ level }) => level === "error"), []);
  }
  assertEquals(agent.log.matching(/^link lost/), []);
  for (const end of ["lost", "reset"]) {
    const series = `tunnel_server_connection_ends_total{end="${end}"}`;
    assertEquals(await tunnel.metric(series), 0, end);
  }
});

/** A caller whose bytes come back from the target, and are compared. */
class EchoLoad implements ConduitEvents {
  readonly #pattern: Uint8Array;
  readonly #closed = Promise.withResolvers<ConduitEnd>();
  readonly #echoed = Promise.withResolvers<void>();
  #isEnding = false;
  sentBytes = 0;
  receivedBytes = 0;
  end: ConduitEnd | undefined;

  constructor(private readonly conduit: Conduit, prng: Prng) {
    // A prime, so that no frame boundary keeps its place in it.
    this.#pattern = prng.bytes(8_191);
    conduit.attach(this);
    this.#send();
  }

  /** Fulfilled when the first bytes are back. */
  get echoed(): Promise<void> {
    return this.#echoed.promise;
  }

  finish(): Promise<ConduitEnd> {
    this.#isEnding = true;
    return this.#closed.promise;
  }

  onData(chunk: Uint8Array): void {
    for (const byte of chunk) {
      const at = this.receivedBytes++ % this.#pattern.length;
      if (byte !== this.#pattern[at]) throw new Error("bytes were changed");
    }
    this.conduit.consumed(chunk.length);
    this.#echoed.resolve();
    if (this.receivedBytes < this.sentBytes) return;
    if (this.#isEnding) this.conduit.end();
    else this.#send();
  }

  onWritable(): void {}

  onEnd(): void {
    this.conduit.end();
  }

  onClose(end: ConduitEnd): void {
    this.end = end;
    this.#closed.resolve(end);
  }

  #send(): void {
    const rest = this.#pattern.subarray(this.sentBytes % this.#pattern.length);
    this.sentBytes += this.conduit.write(rest);
  }
}

/** A tunnel whose files are a Kubernetes volume's, and an agent's, which are not. */
class Stage implements AsyncDisposable {
  agent!: TunnelAgent;
  readonly #echo = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #dialers: TunnelDialer[] = [];

  private constructor(
    readonly tunnel: Tunnel,
    private readonly folder: string,
    private readonly authorities: readonly ThrowawayCa[],
  ) {
    void this.#serveEcho();
  }

  static async open(): Promise<Stage> {
    const folder = await Deno.makeTempDir();
    const authorities = await Promise.all([
      ThrowawayCa.create("authority A"),
      ThrowawayCa.create("authority B"),
    ]);
    await writeVolume(folder, 0, authorities);
    await writePlain(folder, 0, authorities);
    const volume = (name: string) => `${folder}/volume/${name}`;
    const keyPair = { certFile: volume("tls.crt"), keyFile: volume("tls.key") };
    const caFile = volume("ca.crt");
    const address = { hostname: "127.0.0.1", port: 0 };
    const tunnel = await Tunnel.open({
      serverAgents: { keyPair, caFile },
      server: {
        frontend: {
          mode: "auto",
          keepaliveMs: 3600_000,
          connectEarly200: false,
          listen: { kind: "tcp", address, keyPair, caFile },
        },
        authorization: { policyFile: volume("policy.json") },
      },
    });
    const stage = new Stage(tunnel, folder, authorities);
    stage.agent = tunnel.startAgent(await stage.#agentOptions("agent-1"));
    await tunnel.log.until(/^agent linked$/);
    return stage;
  }

  async load(): Promise<EchoLoad[]> {
    const loads: EchoLoad[] = [];
    for (const protocol of PROTOCOLS) {
      const dialer = this.#newDialer(protocol);
      for (let index = 0; index < CONDUITS_PER_PROTOCOL; index++) {
        const conduit = await this.#dial(dialer);
        loads.push(new EchoLoad(conduit, new Prng(loads.length)));
      }
    }
    await Promise.all(loads.map(({ echoed }) => echoed));
    return loads;
  }

  /** Replaces every file, and waits until both ends have noticed. */
  async reload(round: number): Promise<void> {
    const { log, server } = this.tunnel;
    const noticed = [
      log.next(/^agent-port: certificates reloaded/),
      log.next(/^frontend: certificates reloaded/),
      log.next(/^policy: reloaded/),
      this.agent.log.next(/^server-link: certificates reloaded/),
    ];
    await writeVolume(this.folder, round, this.authorities);
    await writePlain(this.folder, round, this.authorities);
    // Every other time somebody asks; else the files are watched.
    if (round % 2 === 0) {
      server.reload();
      this.agent.running.reload();
    }
    await Promise.all(noticed);
  }

  /** Who comes now is served by what the files say now. */
  async tryNewcomers(round: number): Promise<void> {
    const dialer = this.#newDialer(PROTOCOLS[round % 2]!);
    const load = new EchoLoad(await this.#dial(dialer), new Prng(round));
    await load.echoed;
    assertEquals(await load.finish(), { kind: "clean" });
    if (round % 10 !== 0) return;
    const linked = this.tunnel.log.next(/^agent linked$/);
    const options = await this.#agentOptions(`agent-${round}`);
    const { running } = this.tunnel.startAgent(options);
    assertEquals((await linked).fields["agent"], `agent-${round}`);
    // Conduits of others that it was given would be dropped for good reason.
    running.shutdown();
    await running.finished;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const dialer of this.#dialers) dialer.close();
    await this.tunnel[Symbol.asyncDispose]();
    this.#echo.close();
    await Deno.remove(this.folder, { recursive: true });
  }

  #newDialer(protocol: FrontendProtocol): TunnelDialer {
    const plain = (name: string) => `${this.folder}/plain/${name}`;
    const dialer = openDialer({
      kind: "tunnel",
      protocol,
      address: {
        kind: "tcp",
        host: "127.0.0.1",
        port: portOf(this.tunnel.server.addresses.frontend),
        tls: {
          caFile: plain("ca.crt"),
          certFile: plain("tls.crt"),
          keyFile: plain("tls.key"),
        },
      },
    });
    this.#dialers.push(dialer);
    return dialer;
  }

  #dial(dialer: TunnelDialer): Promise<Conduit> {
    const { port } = this.#echo.addr;
    const target = { protocol: "tcp", address: `127.0.0.1:${port}` } as const;
    return dialer.dial({ target });
  }

  async #agentOptions(agentId: string) {
    const options = await this.tunnel.agentOptions({ agentId });
    const plain = (name: string) => `${this.folder}/plain/${name}`;
    const keyPair = { certFile: plain("tls.crt"), keyFile: plain("tls.key") };
    const server = { ...options.server, caFile: plain("ca.crt"), keyPair };
    return { ...options, server };
  }

  async #serveEcho(): Promise<void> {
    for await (const conn of arrivals(this.#echo)) {
      void conn.readable.pipeTo(conn.writable).catch(() => {
        // The test says how conduits end; this end only echoes.
      });
    }
  }
}

/** Who issues in a round, and who is trusted: A, both, B, both, A … */
function phase(round: number, authorities: readonly ThrowawayCa[]) {
  const issuer = authorities[((round + 1) >> 1) % 2]!;
  return { issuer, trusted: round % 2 === 0 ? [issuer] : authorities };
}

async function material(round: number, authorities: readonly ThrowawayCa[]) {
  const { issuer, trusted } = phase(round, authorities);
  const pair: CertificatePair = await issuer.issue({
    commonName: "tunnel-server",
    usage: "both",
    names: ["localhost", "127.0.0.1"],
  });
  // A comment makes each bundle another one.
  const ca = trusted.map(({ cert }) => cert).join("") + `# ${round}\n`;
  return { ...pair, ca };
}

/** As kubelet does it: a new directory, and `..data` renamed over. */
async function writeVolume(
  folder: string,
  round: number,
  authorities: readonly ThrowawayCa[],
): Promise<void> {
  const { cert, key, ca } = await material(round, authorities);
  const volume = `${folder}/volume`;
  await Deno.mkdir(`${volume}/..${round}`, { recursive: true });
  const policy = JSON.stringify({
    frontends: [{ commonName: "*", allow: ["tcp:*:*", `udp:*:${round + 1}`] }],
  });
  const files = Object.entries({
    "tls.crt": cert,
    "tls.key": key,
    "ca.crt": ca,
    "policy.json": policy,
  });
  for (const [name, text] of files) {
    await Deno.writeTextFile(`${volume}/..${round}/${name}`, text);
    if (round === 0) await Deno.symlink(`..data/${name}`, `${volume}/${name}`);
  }
  await Deno.symlink(`..${round}`, `${volume}/..tmp`);
  await Deno.rename(`${volume}/..tmp`, `${volume}/..data`);
  if (round > 0) {
    await Deno.remove(`${volume}/..${round - 1}`, { recursive: true });
  }
}

/** As scripts do it: one file after the other. */
async function writePlain(
  folder: string,
  round: number,
  authorities: readonly ThrowawayCa[],
): Promise<void> {
  const { cert, key, ca } = await material(round, authorities);
  await Deno.mkdir(`${folder}/plain`, { recursive: true });
  await Deno.writeTextFile(`${folder}/plain/tls.crt`, cert);
  await Deno.writeTextFile(`${folder}/plain/tls.key`, key);
  await Deno.writeTextFile(`${folder}/plain/ca.crt`, ca);
}
