/**
 * Certificates whose one name reads like several: nobody becomes a node, and no
 * caller somebody else, by a comma in a name that a CA lets its holder choose.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import type { CertificatePair } from "../support/certificates/throwaway_ca.ts";
import { certificates } from "../support/certificates/certificates.ts";
import {
  general,
  NameCa,
  type NameSpec,
} from "../support/certificates/name_certificates.ts";
import {
  commonName,
  utf8,
} from "../support/certificates/written_certificate.ts";
import { portOf, Tunnel } from "../support/rigs/tunnel_harness.ts";

/** Reads like three names where names are split at commas. */
const SMUGGLED = "x, DNS:victim, IP Address:10.9.0.2";

const ODD: readonly (readonly [what: string, spec: NameSpec])[] = [
  ["a URI", { names: [[general.uri(`spiffe://corp/?a=${SMUGGLED}`)]] }],
  ["an e-mail address", { names: [[general.email(SMUGGLED)]] }],
  ["a DNS name", { names: [[general.dns(SMUGGLED)]] }],
  ["a quoted URI", { names: [[general.uri(`u:"${SMUGGLED}`)]] }],
  ["a NUL behind the name", { names: [[general.dns("victim\0.evil")]] }],
  ["two lists of names", {
    names: [[general.dns("evil")], [general.dns("victim")]],
  }],
  ["two common names", { subject: [commonName(utf8("evil"), utf8("victim"))] }],
  ["a common name with a comma", {
    subject: [commonName(utf8("evil, CN=victim"))],
  }],
];

const ca = new NameCa();

function issue(spec: NameSpec): CertificatePair {
  return ca.issue({ subject: [commonName(utf8("evil"))], ...spec });
}

async function caFile(files: Tunnel): Promise<string> {
  return await files.file((await certificates()).ca + ca.cert);
}

Deno.test("with --node-binding=enforce one name proves one name", async () => {
  await using files = await Tunnel.open();
  await using tunnel = await Tunnel.open({
    serverAgents: { nodeBinding: "enforce", caFile: await caFile(files) },
  });
  for (const [what, spec] of ODD) {
    const keyPair = issue(spec);
    for (const agentId of ["victim", "evil"]) {
      const agent = await tunnel.agent({
        agentId,
        identifiers: { host: ["victim"], ipv4: ["10.9.0.2"] },
        keyPair,
      });
      const { message } = await agent.log.until(
        /does not say|^linked to server$|trying again/,
      );
      // TLS itself refuses some of them.
      assert(message !== "linked to server", `${what}: ${message}`);
      agent.running.stop("it was refused");
    }
  }
  // The same names, each by itself, are proven.
  await tunnel.link({
    agentId: "victim",
    identifiers: { host: ["victim"], ipv4: ["10.9.0.2"] },
    keyPair: issue({
      names: [[general.dns("victim"), general.ip(10, 9, 0, 2)]],
    }),
  });
});

async function dials(
  tunnel: Tunnel,
  pair: CertificatePair,
): Promise<string> {
  const certFile = await tunnel.file(pair.cert);
  const keyFile = await tunnel.file(pair.key);
  const tls = {
    caFile: await tunnel.file((await certificates()).ca),
    certFile,
    keyFile,
  };
  const port = portOf(tunnel.server.addresses.frontend);
  const dialer: TunnelDialer = openDialer({
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "tcp", host: "127.0.0.1", port, tls },
  });
  try {
    const target = { protocol: "tcp", address: tunnel.target.address };
    const conduit = await dialer.dial({ target });
    conduit.reset("seen");
    return "connected";
  } catch (error) {
    return (error as Error).message;
  } finally {
    dialer.close();
  }
}

Deno.test("a policy's subjectAltName is about whole names", async () => {
  await using files = await Tunnel.open();
  const policyFile = `${files.socketPath}.policy.json`;
  const allow = ["tcp:127.0.0.1:*"];
  await Deno.writeTextFile(
    policyFile,
    JSON.stringify({
      frontends: [
        { subjectAltName: "DNS:victim", allow },
        { subjectAltName: "IP Address:10.9.*", allow },
        { commonName: "victim", allow },
      ],
    }),
  );
  const { frontend } = await files.serverOptions({ frontend: "tcp" });
  assert(frontend.listen.kind === "tcp");
  // The frontend trusts the odd authority, too.
  const listen = { ...frontend.listen, caFile: await caFile(files) };
  await using attacked = await Tunnel.open({
    server: {
      authorization: { policyFile },
      frontend: { ...frontend, listen },
    },
  });
  await attacked.link();
  for (const [what, spec] of ODD) {
    const outcome = await dials(attacked, issue(spec));
    assert(outcome !== "connected", `${what}: ${outcome}`);
  }
  const honest = issue({ names: [[general.uri("u"), general.dns("victim")]] });
  assertEquals(await dials(attacked, honest), "connected");
});
