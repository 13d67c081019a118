/**
 * HTTP between a parent and a worker, over sockets that one sends the other.
 *
 * @module
 */

import { plain } from "../../../net/admin/http_endpoints.ts";
import { type HttpHandler, HttpPort } from "../../../net/admin/http_port.ts";
import { HttpConnection } from "../../../net/channel/http_connection.ts";
import { streamOf, streamPair } from "../../../net/handover/socket_pair.ts";
import { headBytes } from "../../../net/http1/head.ts";
import { closeAll } from "../../../net/libc/descriptors.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";

/** A worker that answers later counts as one that does not: scrapers wait 10 s. */
const ANSWER_MS = 3_000;

/** Answers what the other process asks. */
export class ChannelHttp {
  readonly #port: HttpPort;

  constructor(handler: HttpHandler) {
    this.#port = new HttpPort(handler);
  }

  /** @param descriptor As it was sent; closed at the end. */
  serve(descriptor: number): void {
    const stream = streamOf(descriptor);
    unawaited("http", this.#port.accept(stream), () => stream.close());
  }
}

/**
 * Asks the other process.
 *
 * @param send Sends it the other end, which is closed here then.
 * @returns `undefined`: it does not answer; it has ended, or is stuck.
 */
export async function askOver(
  send: (descriptor: number) => void,
  path: string,
): Promise<Response | undefined> {
  const { near, far } = streamPair();
  send(far);
  closeAll([far]);
  const connection = new HttpConnection(near, () => {});
  try {
    const { head: { status, fields }, body } = await connection.ask({
      method: "GET",
      bytes: headBytes([`GET ${path} HTTP/1.1`, "host: localhost"]),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const answer = plain(status, await new Response(body).text());
    const [type] = fields.all("content-type");
    if (type !== undefined) answer.headers.set("content-type", type);
    return answer;
  } catch {
    return undefined;
  } finally {
    connection.close();
  }
}
