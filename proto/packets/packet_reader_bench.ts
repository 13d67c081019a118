import { encodePacket } from "./packet_codec.ts";
import { DATA_FRAME_BYTES, writeDataHead } from "./data_head.ts";
import type { Packet } from "./packet.ts";
import { PacketReader } from "./packet_reader.ts";

const DIAL: Packet = {
  type: "DIAL_REQ",
  protocol: "tcp",
  address: "10.0.0.1:443",
  random: 2n ** 62n + 1n,
};

function reader(): PacketReader {
  return new PacketReader({
    onPacket: () => {},
    onData: () => {},
    onOverhead: () => {},
  });
}

function dataMessage(dataBytes: number): Uint8Array {
  const head = writeDataHead(7, dataBytes);
  const message = new Uint8Array(head.length + dataBytes);
  message.set(head);
  return message;
}

function coldMessage(packet: Packet): Uint8Array {
  const bytes = encodePacket(packet);
  const message = new Uint8Array(5 + bytes.length);
  message[4] = bytes.length;
  message.set(bytes, 5);
  return message;
}

for (const dataBytes of [64, 1_460, DATA_FRAME_BYTES]) {
  const message = dataMessage(dataBytes);
  const shared = reader();
  Deno.bench(`read DATA of ${dataBytes} bytes, one chunk`, () => {
    shared.push(message);
  });
}

{
  const message = dataMessage(DATA_FRAME_BYTES);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < message.length; at += 1_460) {
    chunks.push(message.subarray(at, at + 1_460));
  }
  const shared = reader();
  Deno.bench("read DATA of 64 KiB, 1460-byte chunks", () => {
    for (const chunk of chunks) shared.push(chunk);
  });
}

Deno.bench("write a DATA head", () => {
  writeDataHead(7, DATA_FRAME_BYTES);
});

Deno.bench("encode DIAL_REQ", () => {
  encodePacket(DIAL);
});

{
  const message = coldMessage(DIAL);
  const shared = reader();
  Deno.bench("read DIAL_REQ", () => {
    shared.push(message);
  });
}
