/**
 * Everything that the kubelet port has from files changes under its callers:
 * what stands goes on, what is new is authorized by the new files.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { KubeletRig, type RawHttpCaller } from "../support/rigs/kubelet_rig.ts";

/** A followed log, and a connection whose protocol has changed. */
async function busy(rig: KubeletRig): Promise<{
  follower: RawHttpCaller;
  attached: RawHttpCaller;
}> {
  const follower = await rig.caller();
  await follower.say(
    "GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\n" +
      `Host: ${rig.host}\r\n\r\n`,
  );
  await follower.receives(/the first line\n\r\n$/);
  const attached = await rig.caller();
  await attached.say(
    `POST /attach/default/web/main HTTP/1.1\r\nHost: ${rig.host}\r\n` +
      "Content-Length: 0\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
  );
  await attached.receives(/\r\n\r\n$/);
  await rig.kubelet.followedBy(1);
  return { follower, attached };
}

/** Reads the files again, and waits until all of them are in use. */
async function reload(rig: KubeletRig): Promise<void> {
  const { log, server } = rig.tunnel;
  const noticed = ["kubelet-port", "kubelets"].map((kind) =>
    log.next(new RegExp(`^${kind}: certificates reloaded`))
  );
  server.reload();
  await Promise.all(noticed);
}

Deno.test("new certificates and authorities drop no caller of the kubelet port", async () => {
  await using rig = await KubeletRig.open();
  const callersCa = await ThrowawayCa.create("the next callers' CA");
  const frontCa = await ThrowawayCa.create("the next front's CA");
  const { follower, attached } = await busy(rig);
  await rig.write({
    front: await frontCa.issue({
      commonName: "front",
      usage: "server",
      names: ["127.0.0.1"],
    }),
    callers: callersCa.cert,
    client: await rig.anotherClient("the-next-client"),
  });
  await reload(rig);

  const next = await callersCa.issue({ commonName: "next", usage: "client" });
  const newcomer = await rig.caller(next, frontCa.cert);
  await newcomer.say(`GET /pods HTTP/1.1\r\nHost: ${rig.host}\r\n\r\n`);
  assertMatch(await newcomer.rest(), /^HTTP\/1\.1 200 OK.*pods\n$/s);
  assertEquals(rig.kubelet.requests.map(({ commonName }) => commonName), [
    "tunnel-kubelet-client",
    "tunnel-kubelet-client",
    "the-next-client",
  ]);
  const { client } = await certificates();
  await assertRejects(async () => {
    const late = await rig.caller(client, frontCa.cert);
    await late.say(`GET /pods HTTP/1.1\r\nHost: ${rig.host}\r\n\r\n`);
    return await late.rest();
  });

  await rig.kubelet.log("another one");
  assertEquals(await follower.receives(/\r\n$/), "c\r\nanother one\n\r\n");
  const saying = attached.say("still here")
    .then(() => attached.socket.closeWrite());
  assertEquals(await attached.rest(), "still here");
  await saying;
  follower.socket.close();
  await rig.kubelet.followedBy(0);
});

Deno.test("another authority of kubelets counts from the next request on", async () => {
  await using rig = await KubeletRig.open();
  const { follower, attached } = await busy(rig);
  const { otherCa } = await certificates();
  await rig.write({ kubelets: otherCa });
  const { log, server } = rig.tunnel;
  const noticed = log.next(/^kubelets: certificates reloaded/);
  server.reload();
  await noticed;
  const ask = "GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n";
  assertMatch(await rig.ask(ask), /^HTTP\/1\.1 502 .*not signed by a CA/);
  await rig.kubelet.log("another one");
  await follower.receives(/another one\n\r\n$/);
  await attached.say("still here");
  assertEquals(await attached.receives(/here$/), "still here");
  for (const { socket } of [follower, attached]) socket.close();
  await rig.kubelet.followedBy(0);
});

Deno.test("a bad certificate of the kubelet port keeps the old one", async () => {
  await using rig = await KubeletRig.open();
  const { follower } = await busy(rig);
  await rig.write({ front: "no certificate" });
  const { log, server } = rig.tunnel;
  const noticed = log.next(/certificate.*stays in use$/);
  server.reload();
  await noticed;
  const ask = "GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n";
  assertMatch(await rig.ask(ask), /^HTTP\/1\.1 200 /);
  await rig.kubelet.log("another one");
  await follower.receives(/another one\n\r\n$/);
  follower.socket.close();
  await rig.kubelet.followedBy(0);
});
