/**
 * Reads server-sent events (WHATWG HTML §9.2.6) whose data is JSON, out of text
 * that may be cut anywhere.
 *
 * @module
 */

/** Longest event: the first of five thousand nodes is some megabytes. */
export const ANSWERED_EVENT_LENGTH_MAX = 32 * 1024 * 1024;

export class ServerSentEvents {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #length = 0;

  constructor(
    private readonly onEvent: (name: string, data: unknown) => void,
  ) {}

  /** @throws {Error} When the data of an event is no JSON, or is too long. */
  push(text: string): void {
    const lines = (this.#rest + text).split(/\r\n|\n/);
    this.#rest = lines.pop()!;
    for (const line of lines) this.#take(line);
    if (this.#length + this.#rest.length > ANSWERED_EVENT_LENGTH_MAX) {
      throw new Error("it sent an event that is too long");
    }
  }

  #take(line: string): void {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field !== "data") return;
    this.#data.push(value);
    this.#length += value.length;
  }

  #end(): void {
    const [name, data] = [this.#name || "message", this.#data];
    this.#name = "";
    this.#data = [];
    this.#length = 0;
    if (data.length > 0) this.onEvent(name, JSON.parse(data.join("\n")));
  }
}
