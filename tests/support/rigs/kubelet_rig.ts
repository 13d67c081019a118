/**
 * A tunnel with a kubelet front end, a stand-in kubelet behind its agent, and
 * callers who say what they like, byte by byte.
 *
 * @module
 */

import { denoStream } from "../../../net/stream/platform_stream.ts";
import { Socket } from "../../../net/stream/socket.ts";
import { tlsClient } from "../../../net/tls/tls_client.ts";
import {
  type CertificatePair,
  ThrowawayCa,
} from "../certificates/throwaway_ca.ts";
import type { Carrier } from "../../../proto/link/link.ts";
import type { KubeletOptions } from "../../../server/options.ts";
import type { ServerOptions } from "../../../server/options.ts";
import { certificates } from "../certificates/certificates.ts";
import { StandInKubelet } from "../peers/kubelet.ts";
import { portOf, Tunnel } from "./tunnel_harness.ts";
import { patience } from "../watch/patience.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Everything kubelets' TLS is about; PEM. */
interface KubeletCertificates {
  readonly ca: string;
  /** `edge-1`, and an address. */
  readonly kubelet: CertificatePair;
  /** `CN=tunnel-kubelet-client`: as whom we come to kubelets. */
  readonly client: CertificatePair;
  /** As whom else we may come. */
  another(commonName: string): Promise<CertificatePair>;
}

let made: Promise<KubeletCertificates> | undefined;

async function make(): Promise<KubeletCertificates> {
  const ca = await ThrowawayCa.create("kubelets' CA");
  return {
    ca: ca.cert,
    kubelet: await ca.issue({
      commonName: "system:node:edge-1",
      usage: "server",
      names: ["edge-1", "10.1.2.3"],
    }),
    client: await ca.issue({
      commonName: "tunnel-kubelet-client",
      usage: "client",
    }),
    another: (commonName) => ca.issue({ commonName, usage: "client" }),
  };
}

/** What a test's front end is like, where it is not as usual. */
export interface KubeletConfig {
  readonly carrier?: Carrier;
  readonly kubelet?: Partial<KubeletOptions>;
  /** Left out of the options. */
  readonly without?: readonly ("keyPair" | "clientKeyPair" | "kubeletCaFile")[];
  readonly server?: Partial<ServerOptions>;
  /** The agent is not there. */
  readonly isUnlinked?: boolean;
}

/** See the module description. */
export class KubeletRig implements AsyncDisposable {
  private constructor(
    private readonly folder: string,
    readonly tunnel: Tunnel,
    readonly kubelet: StandInKubelet,
    /** Of the front end. */
    readonly port: number,
  ) {}

  static async open(config: KubeletConfig = {}): Promise<KubeletRig> {
    const all = await (made ??= make());
    const { server, ca } = await certificates();
    const folder = await Deno.makeTempDir({ prefix: "kubelet-" });
    const file = async (name: string, text: string) => {
      await Deno.writeTextFile(`${folder}/${name}`, text, { mode: 0o600 });
      return `${folder}/${name}`;
    };
    const pair = async (name: string, { cert, key }: CertificatePair) => ({
      certFile: await file(`${name}.crt`, cert),
      keyFile: await file(`${name}.key`, key),
    });
    const kubelet = new StandInKubelet({ ...all.kubelet, ca: all.ca });
    const options: KubeletOptions = {
      address: { hostname: "127.0.0.1", port: 0 },
      keyPair: await pair("front", server),
      callerCaFile: await file("callers.crt", ca),
      clientKeyPair: await pair("client", all.client),
      kubeletCaFile: await file("kubelets.crt", all.ca),
      localhostPorts: [kubelet.port],
      ...config.kubelet,
    };
    const wanted = Object.fromEntries(
      Object.entries(options)
        .filter(([name]) => !config.without?.some((each) => each === name)),
    ) as unknown as KubeletOptions;
    const tunnel = await Tunnel.open({
      server: { kubelet: wanted, ...config.server },
    });
    if (config.isUnlinked !== true) {
      await tunnel.link({
        ...(config.carrier === undefined ? {} : { carrier: config.carrier }),
        agentId: "edge-1",
        identifiers: { host: ["edge-1"], ipv4: ["10.1.2.3"] },
      });
    }
    const port = portOf(tunnel.server.addresses.kubelet!);
    return new KubeletRig(folder, tunnel, kubelet, port);
  }

  /** What a caller writes into Host. */
  get host(): string {
    return `edge-1:${this.kubelet.port}`;
  }

  /** Another client certificate that the kubelet believes. */
  async anotherClient(commonName: string): Promise<CertificatePair> {
    return await (await made!).another(commonName);
  }

  /** Writes files of the front end: `front`, `client`, `callers`, `kubelets`. */
  async write(
    files: Readonly<Record<string, CertificatePair | string>>,
  ): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const { cert, key } = typeof content === "string"
        ? { cert: content, key: undefined }
        : content;
      await Deno.writeTextFile(`${this.folder}/${name}.crt`, cert);
      if (key === undefined) continue;
      await Deno.writeTextFile(`${this.folder}/${name}.key`, key);
    }
  }

  /** A caller with a good certificate, or with another one. */
  async caller(
    pair?: CertificatePair,
    believed?: string,
    hostname = "127.0.0.1",
  ): Promise<RawHttpCaller> {
    const { ca, client } = await certificates();
    const conn = await Deno.connect({ hostname, port: this.port });
    const stream = await tlsClient(denoStream(conn), {
      credentials: { ...(pair ?? client), ca: believed ?? ca },
      serverName: "127.0.0.1",
      alpn: ["http/1.1"],
      address: "the front end",
      signal: AbortSignal.timeout(patience(10_000)),
    });
    return new RawHttpCaller(new Socket(stream));
  }

  /** Says `text` and reads the answer to its end. `HOST` stands for the host. */
  async ask(text: string): Promise<string> {
    const caller = await this.caller();
    await caller.say(text.replaceAll("HOST", this.host));
    return await caller.rest();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tunnel[Symbol.asyncDispose]();
    await this.kubelet[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** A connection to the front end, as a test handles it. */
export class RawHttpCaller {
  constructor(readonly socket: Socket) {}

  say(text: string | Uint8Array): Promise<void> {
    return this.socket.writeAll(
      typeof text === "string" ? encoder.encode(text) : text,
    );
  }

  /** Reads until `pattern` fits what has come since the last call. */
  async receives(pattern: RegExp): Promise<string> {
    let received = "";
    while (!pattern.test(received)) {
      if (!await this.socket.fill()) throw new Error(`only ${received}`);
      received += decoder.decode(this.socket.bytes);
      this.socket.drop(this.socket.bytes.length);
    }
    return received;
  }

  /** Everything to the end. */
  async rest(): Promise<string> {
    let received = "";
    const decoder = new TextDecoder();
    while (await this.socket.fill()) {
      received += decoder.decode(this.socket.bytes, { stream: true });
      this.socket.drop(this.socket.bytes.length);
    }
    this.socket.close();
    return received;
  }
}
