/**
 * The name server of a run, at the address that resolv.conf names there. It can
 * lose its mind in several ways, in turn.
 *
 * @module
 */

import {
  type Answerer,
  dnsAnswer,
  DnsServer,
  fromTable,
} from "../../tests/support/peers/dns_server.ts";
import { HOME_ADDRESS } from "./network.ts";

/** How questions are answered. */
export type NameMood = "well" | "silent" | "servfail" | "nxdomain" | "empty";

/** So that everybody asks again soon. */
const TTL_SECONDS = 1;

const SERVFAIL = 2;
const NXDOMAIN = 3;

/** See the module description. */
export class NameServer implements AsyncDisposable {
  readonly #table: Record<string, string[]> = {};
  readonly #server = DnsServer.open((asked) => this.#answer(asked), {
    hostname: HOME_ADDRESS,
    port: 53,
  });
  mood: NameMood = "well";

  set(name: string, address: string): void {
    this.#table[name] = [address];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }

  #answer(asked: Parameters<Answerer>[0]): ReturnType<Answerer> {
    if (this.mood === "silent") return [];
    if (this.mood === "empty") return [dnsAnswer(asked, [])];
    if (this.mood !== "well") {
      const code = this.mood === "servfail" ? SERVFAIL : NXDOMAIN;
      return [dnsAnswer(asked, [], { code })];
    }
    return fromTable(this.#table, TTL_SECONDS)(asked);
  }
}
