/**
 * Queries a name server by TCP (RFC 7766), for answers that fit no datagram.
 *
 * @module
 */

import type { DatagramAddress } from "../libc/socket_address.ts";
import { Socket } from "../stream/socket.ts";
import { connectToAddress } from "../stream/socket_connect.ts";
import {
  type DnsQuestion,
  type DnsReply,
  encodeQuestion,
  readReply,
} from "./dns_message.ts";

/**
 * Sends one query over a connection of its own.
 *
 * @throws A system error, or one without a code when the server closes too
 *   early or answers something else.
 */
export async function queryByTcp(
  server: DatagramAddress,
  question: DnsQuestion,
  signal: AbortSignal,
): Promise<DnsReply> {
  const socket = new Socket(await connectToAddress(server, signal));
  const close = () => socket.close();
  signal.addEventListener("abort", close);
  try {
    signal.throwIfAborted();
    const [id] = crypto.getRandomValues(new Uint16Array(1));
    await socket.writeAll(framed(encodeQuestion(question, id!, false)));
    const bytes = await readMessage(socket);
    const reply = readReply(bytes, question, id!);
    if (reply === undefined) throw new Error("It answers another question");
    return reply;
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

/** With its length before it. */
function framed(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(message.length + 2);
  bytes[0] = message.length >> 8;
  bytes[1] = message.length & 0xff;
  bytes.set(message, 2);
  return bytes;
}

async function readMessage(socket: Socket): Promise<Uint8Array> {
  const head = await readExactly(socket, 2);
  return await readExactly(socket, (head[0]! << 8) | head[1]!);
}

async function readExactly(
  socket: Socket,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let at = 0;
  while (at < length) {
    const count = await socket.read(bytes.subarray(at));
    if (count === null) throw new Error("It closed before it had answered");
    at += count;
  }
  return bytes;
}
