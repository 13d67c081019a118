import { Socket } from "../net/stream/socket.ts";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { systemTimers } from "../platform/time/system_timers.ts";
import { CertificateFiles } from "../tests/support/certificates/certificate_files.ts";
import { certificates } from "../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { readToEnd } from "../tests/support/peers/sockets.ts";
import { testEachEngine } from "../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../tests/support/peers/tls_server.ts";
import { TunnelDialError } from "./dial_error.ts";
import {
  FRONTEND_CONNECT_TIMEOUT_MS,
  openFrontendStream,
} from "./frontend_stream.ts";
import type { FrontendAddress } from "./tunnel_route.ts";

const OPTIONS = { timers: systemTimers };

async function withUnix(
  check: (path: string, listener: Deno.UnixListener) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/front.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  try {
    await check(path, listener);
  } finally {
    listener.close();
    await Deno.remove(directory, { recursive: true });
  }
}

async function failure(opening: Promise<unknown>): Promise<string> {
  const error = await assertRejects(() => opening, TunnelDialError);
  assertEquals(error.reason, "streamsetup");
  return error.message;
}

Deno.test("a unix socket is spoken to plainly", async () => {
  await withUnix(async (path, listener) => {
    const timers = new FakeTimers();
    const address = { kind: "unix", path } as const;
    const socket = await openFrontendStream(address, "http1", { timers });
    assertEquals(timers.pendingCount, 0);
    const accepted = await listener.accept();
    await socket.write(new TextEncoder().encode("CONNECT"));
    await socket.closeWrite();
    assertEquals(
      new TextDecoder().decode(await readToEnd(accepted)),
      "CONNECT",
    );
    socket.close();
    accepted.close();
  });
});

testEachEngine(
  "TCP is TLS with our certificate; HTTP/2 is negotiated, HTTP/1.1 is not",
  async (engine) => {
    using files = await CertificateFiles.write();
    const alpn: string[] = [];
    await using port = await TlsServer.open(engine, (stream) => {
      alpn.push(`${stream.identity.commonName} ${stream.alpn}`);
      const socket = new Socket(stream);
      socket.write(new Uint8Array(1)).then(() => socket.close());
    });
    const address: FrontendAddress = {
      kind: "tcp",
      host: "127.0.0.1",
      port: port.port,
      tls: files.client,
    };
    for (const protocol of ["http1", "http2"] as const) {
      const socket = new Socket(
        await openFrontendStream(address, protocol, OPTIONS),
      );
      await socket.fill();
      socket.close();
    }
    assertEquals(alpn, ["node1 ", "node1 h2"]);
  },
);

testEachEngine(
  "a server's certificate may be for another name, if that is wanted",
  async (engine) => {
    using files = await CertificateFiles.write();
    await using port = await TlsServer.open(engine, (socket) => socket.close());
    const at = (serverName: string): FrontendAddress => ({
      kind: "tcp",
      host: "127.0.0.1",
      port: port.port,
      tls: { ...files.client, serverName },
    });
    (await openFrontendStream(at("tunnel-server"), "http1", OPTIONS)).close();
    const message = await failure(
      openFrontendStream(at("elsewhere"), "http1", OPTIONS),
    );
    assert(message.startsWith(`Cannot connect to 127.0.0.1:${port.port} with`));
    assert(message.includes("for another name"));
  },
);

Deno.test("a frontend that cannot be reached is reported with its address", async () => {
  using files = await CertificateFiles.write();
  const unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = unused.addr;
  unused.close();
  const tls = files.client;
  const long = `/tmp/${"x".repeat(200)}`;
  const cases: [FrontendAddress, string][] = [
    [
      { kind: "unix", path: "/nowhere/front.sock" },
      "Cannot connect to unix:/nowhere/front.sock: there is no such socket; " +
      "is the server running there?",
    ],
    [
      { kind: "unix", path: long },
      `Cannot connect to unix:${long}: path must be shorter than SUN_LEN`,
    ],
    [
      { kind: "tcp", host: "127.0.0.1", port, tls },
      `Cannot connect to 127.0.0.1:${port}: connection refused; is the ` +
      "server running there?",
    ],
    [
      {
        kind: "tcp",
        host: "127.0.0.1",
        port,
        tls: { ...tls, certFile: "/nowhere.crt" },
      },
      "Cannot read certificate /nowhere.crt: there is no such file; check " +
      "the path",
    ],
  ];
  for (const [address, message] of cases) {
    assertEquals(
      await failure(openFrontendStream(address, "http1", OPTIONS)),
      message,
    );
  }
});

Deno.test("a server that never shakes hands is given up in time", async () => {
  using files = await CertificateFiles.write();
  const timers = new FakeTimers();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const opening = failure(openFrontendStream(
    {
      kind: "tcp",
      host: "127.0.0.1",
      port,
      tls: files.client,
    },
    "http1",
    { timers },
  ));
  const conn = await listener.accept();
  await conn.read(new Uint8Array(1)); // The hello: now it waits for ours.
  timers.advance(FRONTEND_CONNECT_TIMEOUT_MS);
  assertEquals(
    await opening,
    `Cannot connect to 127.0.0.1:${port}: no answer within 10000 ms`,
  );
  assertEquals(timers.pendingCount, 0);
  conn.close();
});

Deno.test("giving up throws the reason for that", async () => {
  using files = await CertificateFiles.write();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const abort = new AbortController();
  const addresses: FrontendAddress[] = [
    { kind: "tcp", host: "127.0.0.1", port, tls: files.client },
    { kind: "unix", path: "/nowhere/front.sock" },
  ];
  abort.abort(new Error("enough"));
  for (const address of addresses) {
    await assertRejects(
      () =>
        openFrontendStream(address, "http1", {
          ...OPTIONS,
          signal: abort.signal,
        }),
      Error,
      "enough",
    );
  }
});

testEachEngine(
  "renewed certificate files are used for the next connection",
  async (engine) => {
    using files = await CertificateFiles.write();
    const { otherClient } = await certificates();
    await using port = await TlsServer.open(engine, (socket) => socket.close());
    const address: FrontendAddress = {
      kind: "tcp",
      host: "127.0.0.1",
      port: port.port,
      tls: files.client,
    };
    (await openFrontendStream(address, "http1", OPTIONS)).close();
    await Deno.writeTextFile(files.client.certFile, otherClient.cert);
    const message = await failure(
      openFrontendStream(address, "http1", OPTIONS),
    );
    assert(message.includes("does not belong to the first certificate"));
  },
);
