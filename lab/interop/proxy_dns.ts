/**
 * The DNS of `tunnel proxy`, asked by dig.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { debianCommand } from "../../tests/support/program/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { FileProxy } from "../peers/service_proxy.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { eventually } from "./kube_case.ts";
import { type ProxyCases } from "./proxy_case.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

const WEB = "web.default.svc.tunnel";

/** So many SRV records fit no datagram. */
const MANY_PORTS = 40;

/** Where services are served in these cases. */
const HOST = "127.100.7.1";

/** A proxy with a DNS port, and dig. */
interface NamedServices extends AsyncDisposable {
  /** All that dig prints. */
  dig(...words: readonly string[]): Promise<string>;
  rewrite(services: readonly unknown[]): Promise<void>;
}

async function start(
  workspace: Workspace,
  services: readonly unknown[],
): Promise<NamedServices> {
  const port = freePort();
  const textOf = (services: readonly unknown[]) => JSON.stringify({ services });
  const proxy = await FileProxy.launch(workspace, textOf(services), [
    `--dns-listen=127.0.0.1:${port}`,
    `--bind-address=${HOST}`,
  ]);
  const command = await debianCommand("dig");
  const dig = (...words: readonly string[]) =>
    mustEnd([
      ...command,
      ...["-r", "@127.0.0.1", "-p", String(port), "+tries=1", "+time=3"],
      ...words,
    ]);
  await proxy.serves(portsOf(services));
  return {
    dig,
    rewrite: (services) => proxy.rewriteAs(textOf(services)),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

function portsOf(services: readonly unknown[]): number {
  return services
    .map((each) => (each as { ports: readonly unknown[] }).ports.length)
    .reduce((sum, count) => sum + count, 0);
}

const service = (name: string, ports: readonly unknown[]) => ({ name, ports });

/** `status: NOERROR`, and how many records there are in each section. */
function headOf(said: string): string {
  const [, status] = /status: (\w+)/.exec(said) ?? [];
  const [, answers, authorities] =
    /ANSWER: (\d+), AUTHORITY: (\d+)/.exec(said) ?? [];
  return `${status} ${answers} ${authorities}`;
}

export const PROXY_DNS_CASES: ProxyCases = {
  "dig finds a service's address and its ports": async (workspace) => {
    const http = freePort();
    await using named = await start(workspace, [
      service("web", [
        { name: "http", port: 80, listen: http },
        { name: "dns", port: 53, protocol: "udp", listen: freePort() },
      ]),
    ]);
    const { dig } = named;
    assertEquals((await dig("+short", WEB)).trim(), HOST);
    assertEquals(
      (await dig("+short", "+tcp", "wEb.default.SVC.tunnel")).trim(),
      HOST,
    );
    assertEquals(
      (await dig("+short", `_http._tcp.${WEB}`, "SRV")).trim(),
      `0 0 ${http} ${WEB}.`,
    );
    const srv = await dig(`_dns._udp.${WEB}`, "SRV");
    assertMatch(srv, /flags: qr aa rd/);
    assertMatch(
      srv,
      new RegExp(`ADDITIONAL SECTION:\n${WEB}\\.\\s+5\\s+IN\\s+A\\s+${HOST}`),
    );
    assertMatch(srv, /EDNS: version: 0, flags:; udp: 1232/);
  },

  "dig tells what is not there from what has no such record": async (
    workspace,
  ) => {
    await using named = await start(workspace, [
      service("web", [{ port: 80, listen: freePort() }]),
    ]);
    const { dig } = named;
    assertEquals(headOf(await dig(WEB, "AAAA")), "NOERROR 0 1");
    assertEquals(headOf(await dig("db.default.svc.tunnel")), "NXDOMAIN 0 1");
    assertEquals(headOf(await dig("svc.tunnel", "SOA")), "NOERROR 1 0");
    assertEquals(headOf(await dig("example.com")), "REFUSED 0 0");
    assertEquals(headOf(await dig(WEB, "CH", "TXT")), "REFUSED 0 0");
    assertEquals(headOf(await dig(WEB, "TYPE65280")), "NOERROR 0 1");
    const future = await dig("+edns=1", "+noednsnegotiation", WEB);
    assertEquals(headOf(future), "BADVERS 0 0");
    assertEquals(headOf(await dig("+noedns", WEB)), "NOERROR 1 0");
    assertEquals(headOf(await dig("+opcode=update", WEB)), "NOTIMP 0 0");
    for (
      const odd of ["+dnssec", "+nsid", "+subnet=10.0.0.0/8", "+padding=64"]
    ) {
      assertEquals(headOf(await dig(odd, WEB)), "NOERROR 1 0", odd);
    }
  },

  "dig asks again over TCP for what fits no datagram": async (workspace) => {
    const ports = Array.from(
      { length: MANY_PORTS },
      (_, index) => ({
        name: `p${index}`,
        port: index + 1,
        listen: freePort(),
      }),
    );
    await using named = await start(workspace, [service("web", ports)]);
    const { dig } = named;
    const whole = await dig(WEB, "SRV");
    assertMatch(whole, /Truncated, retrying in TCP mode/);
    assertEquals(headOf(whole), `NOERROR ${MANY_PORTS} 0`);
    assertMatch(await dig("+ignore", WEB, "SRV"), /flags: qr aa tc rd/);
  },

  "dig sees services come and go": async (workspace) => {
    const web = service("web", [{ port: 80, listen: freePort() }]);
    await using named = await start(workspace, [web]);
    await named.rewrite([{ ...web, name: "shop" }]);
    await eventually(
      "the new one is there",
      async () =>
        (await named.dig("+short", "shop.default.svc.tunnel")).trim() === HOST,
    );
    assertEquals(headOf(await named.dig(WEB)), "NXDOMAIN 0 1");
  },
};
