import { assert, assertEquals } from "@std/assert";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import { Machine } from "../support/rigs/enrolled_agent.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { patience } from "../support/watch/patience.ts";

// What takes seconds, because certificates count in seconds and people wait.

Deno.test("a certificate is renewed at two thirds of its life, under a conduit", async () => {
  const stateDirectory = memoryFolder();
  await using rig = await IdentityRig.open({
    identity: {
      stateDirectory,
      serverNames: ["127.0.0.1"],
      nodeCertificateLifeMs: Math.ceil(patience(3_000)),
    },
  }, stateDirectory);
  using machine = new Machine("edge-7");
  await machine.link(rig, { token: await rig.token() });
  const { caller, target } = await rig.tunnel.connect("grpc");
  const serials = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const pem = await machine.read("cert.pem");
    const { x509, notAfterMs } = certificateFacts(pem);
    serials.add(x509.serialNumber);
    const { fields } = await machine.log.next(/^certificate renewed$/);
    assertEquals(fields["by"], "certificate");
    assert(Date.now() < notAfterMs, "before the old one has ended");
    caller.send("x");
    await target.received(round + 1);
  }
  assertEquals(serials.size, 3);
  assertEquals(machine.log.matching(/^link lost/), []);
});
