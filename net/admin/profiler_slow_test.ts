import { assert, assertEquals } from "@std/assert";
import { HttpPort } from "./http_port.ts";
import { HEAP_FILES_MAX, Profiler, profileRoutes } from "./profile_routes.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";

function busyWork(untilMs: number): void {
  let sum = 0;
  while (performance.now() < untilMs) sum += Math.sqrt(sum + 1);
}

Deno.test("a CPU profile names what the process did", async () => {
  const routes = profileRoutes();
  const url = new URL("http://127.0.0.1/debug/pprof/profile?seconds=1");
  const answer = routes["/debug/pprof/profile"]!(url, new Request(url));
  setTimeout(() => busyWork(performance.now() + 300), 100);
  const alive = setInterval(() => {}, 100);
  const { nodes, samples, startTime, endTime } = await answer.json();
  clearInterval(alive);
  const named = nodes.map((
    { callFrame }: { callFrame: { functionName: string } },
  ) => callFrame.functionName);
  assert(named.includes("busyWork"), named.join());
  assert(samples.length > 50, `${samples.length}`);
  assert(endTime - startTime > 900_000);
});

Deno.test("heap snapshots are for this user, and the last ones only", async () => {
  const profiler = new Profiler();
  const paths: string[] = [];
  for (let left = HEAP_FILES_MAX + 1; left > 0; left--) {
    paths.push(profiler.heap());
  }
  await assertIsGone(paths.shift()!);
  for (const path of paths) {
    const { mode, size } = await Deno.stat(path);
    assertEquals(mode! & 0o777, 0o600);
    assert(size > 100_000);
    const first = await Deno.readTextFile(path);
    assert(first.startsWith('{"snapshot":{"meta"'), first.slice(0, 100));
    await Deno.remove(path);
  }
});

async function assertIsGone(path: string): Promise<void> {
  const gone = await Deno.stat(path).then(() => false, () => true);
  assert(gone, path);
}

Deno.test("an answer that takes its time outlives the deadline of others", async () => {
  const port = new HttpPort((_request, peer) => {
    peer.mayTake?.(5_000);
    return new Response(
      new ReadableStream({
        async start(controller) {
          await new Promise((wake) => setTimeout(wake, 10_500));
          controller.enqueue(new TextEncoder().encode("at last"));
          controller.close();
        },
      }),
    );
  });
  const [client, accepted] = await tcpPair();
  const served = port.accept(denoStream(accepted));
  await client.write(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
  const answer = new TextDecoder().decode(await readToEnd(client));
  assert(answer.endsWith("at last"), answer);
  client.close();
  await served;
});
