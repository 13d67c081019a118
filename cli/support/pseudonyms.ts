/**
 * Other names in place of real ones: the same for the same, within one bundle,
 * and numbered, so that nothing of the real one can be computed from them.
 *
 * @module
 */

/** Fields whose texts are names of nodes, users, services, addresses. */
const NAMES: ReadonlySet<string> = new Set([
  ...["name", "node", "nodes", "agent", "agents", "peer", "peers", "id"],
  ...["server", "servers", "client", "clients", "caller", "who", "as", "from"],
  ...["host", "hostname", "address", "target", "dialed", "remoteAddress"],
  ...["commonName", "organization", "service", "services", "joinedAs"],
]);

/** What is the same everywhere says nothing of anybody. */
const COMMON: ReadonlySet<string> = new Set([
  ...["server", "agent", "proxy", "local", "localhost", "default", "tcp"],
  ...["udp", "unix", "host", "node", "true", "false", "health", "admin"],
]);

/** IPv4, and IPv6 with at least two colons; loopback and wildcards stay. */
const ADDRESS =
  /\b(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w:])(?:[0-9a-f]{1,4}:|:){2,7}[0-9a-f]{0,4}(?![\w:])/gi;

/** Shorter ones are parts of other words. */
const NAME_LENGTH_MIN = 2;

/** Names beyond it stay out of free text; there they would take too long. */
const NAMES_MAX = 20_000;

/** The names of one bundle. */
export class Pseudonyms {
  readonly #names = new Map<string, string>();
  readonly #addresses = new Map<string, string>();
  #form: RegExp | undefined;

  /** Learns the names of a JSON value, before any text is written. */
  learn(value: unknown, key = ""): void {
    if (Array.isArray(value)) {
      for (const item of value) this.learn(item, key);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, item] of Object.entries(value)) this.learn(item, name);
    } else if (typeof value === "string" && NAMES.has(key)) {
      this.#learnName(value);
    }
  }

  /** A text with other names in it. */
  text(text: string): string {
    const named = this.#names.size === 0
      ? text
      : text.replaceAll(this.#pattern(), (name) => this.#names.get(name)!);
    return named.replaceAll(ADDRESS, (address) => {
      if (/^(?:127\.|0\.0\.0\.0$|::1?$)/.test(address)) return address;
      const known = this.#addresses.get(address);
      if (known !== undefined) return known;
      const other = `address-${this.#addresses.size + 1}`;
      this.#addresses.set(address, other);
      return other;
    });
  }

  #learnName(given: string): void {
    // Of `HOST:PORT` the port may stay.
    const name = given.replace(/:\d{1,5}$/, "");
    const isOrdinary = name.length < NAME_LENGTH_MIN ||
      /^[\d.:]+$/.test(name) ||
      COMMON.has(name.toLowerCase()) || this.#names.has(name);
    if (isOrdinary || this.#names.size >= NAMES_MAX) return;
    this.#names.set(name, `name-${this.#names.size + 1}`);
    this.#form = undefined;
  }

  #pattern(): RegExp {
    return this.#form ??= new RegExp(
      "(?<![\\w])(?:" +
        [...this.#names.keys()]
          // The longest first: one name may be the beginning of another.
          .sort((a, b) => b.length - a.length)
          .map((name) => RegExp.escape(name))
          .join("|") +
        ")(?![\\w])",
      "g",
    );
  }
}
