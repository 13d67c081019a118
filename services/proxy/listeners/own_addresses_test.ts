import { assertEquals, assertMatch } from "@std/assert";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import {
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { socketStore } from "../../../net/bind/socket_store.ts";
import { Socket } from "../../../net/stream/socket.ts";
import { StreamDescriptor } from "../../../net/stream/stream_descriptor.ts";
import { startPolledTcp } from "../../../net/stream/polled_connect.ts";
import { BIND_RETRY_MS_MAX } from "./service_listener.ts";

const ignore = socketStore() === undefined;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** A service with one port, served at `port`. */
const at = (
  name: string,
  port: number,
  { protocol = "tcp", host }: {
    protocol?: "tcp" | "udp";
    host?: string;
  } = {},
) =>
  service(name, {
    ports: [{
      name: "",
      port: 80,
      protocol,
      listen: { port, ...(host && { host }) },
    }],
  });

/** Connected by the kernel; nobody has accepted it before this turn ends. */
function queued(port: number): Socket {
  const started = startPolledTcp({ hostname: "127.0.0.1", port });
  if (started instanceof StreamDescriptor) return new Socket(started);
  throw new Error("the connection is not there at once");
}

async function answer(socket: Socket, question: string): Promise<string> {
  await socket.write(new TextEncoder().encode(question));
  const buffer = new Uint8Array(64);
  const count = await socket.read(buffer);
  socket.close();
  return text(buffer.subarray(0, count ?? 0));
}

Deno.test({
  name: "who comes while a service gets another name is served",
  ignore,
  fn: async () => {
    await using rig = new ProxyRig();
    const port = deadPort();
    const said = [
      endpoints("a", [rig.echo("a:")]),
      endpoints("b", [rig.echo("b:")]),
    ];
    rig.sink.set({ services: [at("a", port)], endpoints: said });
    for (const name of ["b", "a", "b"]) {
      const early = queued(port);
      rig.sink.set({ services: [at(name, port)], endpoints: said });
      assertEquals(rig.portOf(`default/${name}`), port);
      assertEquals(await answer(early, "x"), `${name}:x`);
    }
    assertEquals(socketStore()!.waiting, []);
  },
});

Deno.test({
  name: "who comes while two services change places is served",
  ignore,
  fn: async () => {
    await using rig = new ProxyRig();
    const [one, other] = [deadPort(), deadPort()];
    rig.sink.set({
      services: [at("a", one), at("b", other)],
      endpoints: [
        endpoints("a", [rig.echo("a:")]),
        endpoints("b", [rig.echo("b:")]),
      ],
    });
    const early = [queued(one), queued(other)];
    rig.sink.add({ services: [at("a", other), at("b", one)] });
    assertEquals(await answer(early[0]!, "x"), "b:x");
    assertEquals(await answer(early[1]!, "x"), "a:x");
  },
});

Deno.test({
  name: "a datagram that comes while its service gets another name is heard",
  ignore,
  fn: async () => {
    await using rig = new ProxyRig();
    await using a = await DatagramPeer.echo("a:");
    await using b = await DatagramPeer.echo("b:");
    await using client = await DatagramPeer.open();
    const port = deadPort();
    const udp = { protocol: "udp" } as const;
    const said = [endpoints("a", [a.port]), endpoints("b", [b.port])];
    rig.sink.set({ services: [at("a", port, udp)], endpoints: said });
    await rig.served("default/a", port);
    client.send("x", port);
    await Promise.resolve(); // It is in the kernel, and nobody has read it.
    rig.sink.set({ services: [at("b", port, udp)], endpoints: said });
    assertEquals(text((await client.next()).bytes), "b:x");
    // A socket that was taken over is given up as well as a new one.
    client.send("y", port);
    await Promise.resolve();
    rig.sink.set({ services: [at("a", port, udp)], endpoints: said });
    assertEquals(text((await client.next()).bytes), "a:y");
    assertEquals(socketStore()!.waiting, []);
  },
});

Deno.test("that it is ourselves who listen everywhere is said", async () => {
  await using rig = new ProxyRig();
  const port = deadPort();
  rig.sink.set({ services: [at("all", port, { host: "0.0.0.0" })] });
  await rig.served("default/all", port);
  rig.sink.add({ services: [at("one", port)] });
  assertMatch(
    rig.proxy.served.get("default/one")!.listener.problem!,
    new RegExp(`127.0.0.1:${port}: default/all on 0.0.0.0:${port} is served`),
  );
  rig.timers.advance(BIND_RETRY_MS_MAX);
});
