/**
 * The HTTP/2 engine in both roles against a peer that says anything.
 *
 * It never throws, tells each stream's story in order and ends once; what it
 * sends is legal HTTP/2 and not much more than what it was sent. Where the
 * application only listens, what it receives does not depend on the cutting.
 *
 * An input is what the peer sends; the roles have a target each.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import type { Frame } from "../../../proto/frames/frame.ts";
import { encodeFrame } from "../../support/peers/encoded_frame.ts";
import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import { HpackEncoder } from "../../../proto/hpack/encoder.ts";
import { Connection } from "../../../proto/streams/connection.ts";
import { WireError } from "../../../proto/frames/wire_error.ts";
import type { Role } from "../../../proto/streams/connection_events.ts";
import type { Stream, StreamEvents } from "../../../proto/streams/stream.ts";
import type { Prng } from "../../support/memory/prng.ts";
import { cut, prngOf } from "../cutting.ts";
import {
  type Act,
  type Activity,
  DROPPED,
  StreamStory,
} from "../stream_story.ts";
import type { FuzzTarget } from "../target.ts";
import { WireAuditor } from "../wire_auditor.ts";
import {
  FRAME_DICTIONARY,
  repairFrame,
  SAMPLE_FRAMES,
  splitFrames,
} from "./frames.ts";

const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Requests that the client role has open when the peer starts to talk. */
const CLIENT_STREAMS = 3;

/** Small, so that refusing streams is met. */
const MAX_CONCURRENT_STREAMS = 4;

const REQUEST = [
  { name: ":method", value: "POST" },
  { name: ":scheme", value: "http" },
  { name: ":path", value: "/ProxyService/Proxy" },
  { name: ":authority", value: "node-7" },
  { name: "te", value: "trailers" },
];
const RESPONSE = [{ name: ":status", value: "200" }];
const INFORMATIONAL = [{ name: ":status", value: "103" }];
const TRAILERS = [{ name: "grpc-status", value: "0" }];

function connectionTarget(role: Role): FuzzTarget {
  return {
    name: `connection_${role}`,
    seeds: [sharedEncode(), freshEncode()].flatMap((block) =>
      role === "server" ? clientTalk(block) : serverTalk(block)
    ),
    dictionary: FRAME_DICTIONARY,
    split: splitTalk,
    repair: (record) => isPreface(record) ? record : repairFrame(record),

    run(input) {
      const prng = prngOf(input);
      const isPassive = prng.below(2) === 0;
      const whole = converse(role, [input.slice()], isPassive, prng);
      const pieces = cut(input, prng);
      const inPieces = converse(role, pieces, isPassive, prng);
      if (isPassive) assertEquals(inPieces, whole);
      return whole.map(shapeOf).slice(0, 8).join();
    },
  };
}

/** A line without what the input put into it, for telling outcomes apart. */
function shapeOf(line: string): string {
  return line.replaceAll(/\[\[.*?\]\]/g, "list").replace(/=.+/, "=some");
}

/** Lets the peer say `chunks`; what the application heard, line by line. */
function converse(
  role: Role,
  chunks: readonly Uint8Array[],
  isPassive: boolean,
  prng: Prng,
): string[] {
  const stories: StreamStory[] = [];
  const ends: string[] = [];
  const connection = new Connection({
    role,
    clock: { now: () => 0 },
    settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS },
    events: {
      onStream: (stream) => listen(() => stream),
      onClosed: (end) => {
        // The reason may quote how the bytes were cut; the code may not.
        const section = end.error instanceof WireError ? end.error.section : "";
        ends.push(`closed by ${end.by} ${end.code} ${section}`);
      },
    },
  });
  const auditor = new WireAuditor(role);
  let received = 0;
  connection.start();
  if (role === "client") {
    for (let count = 0; count < CLIENT_STREAMS; count++) {
      const stream: Stream = connection.openStream(
        REQUEST,
        isPassive,
        listen(() => stream),
      );
    }
  }
  for (const chunk of chunks) {
    connection.receive(chunk);
    received += chunk.length;
    chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
    assert(connection.openStreams <= MAX_CONCURRENT_STREAMS);
    // A peer that does not read for a while is as legal as one that does.
    if (isPassive || prng.below(4) > 0) auditor.drain(connection, received);
  }
  connection.receiveEnd();
  auditor.drain(connection, received);
  assertEquals(ends.length, 1, "A connection ends exactly once");
  assertEquals(connection.openStreams, 0);
  assert(connection.isFinished);
  for (const story of stories) story.assertEnded();
  return [...stories.map((story) => story.text), ...ends];

  function listen(stream: () => Stream): StreamEvents {
    const story = new StreamStory(() => assertEquals(ends, []));
    stories.push(story);
    return isPassive
      ? story.listener(stream, {})
      : story.listener(stream, activity(role, prng));
  }
}

/** An application that answers, each stream in its own way. */
function activity(role: Role, prng: Prng): Activity {
  const isServer = role === "server";
  const drop: Act = (stream) => {
    stream.reset(8);
    return DROPPED;
  };
  return prng.pick<Activity>([
    { // Echoes what it can and ends with trailers.
      onHeaders(stream) {
        if (!isServer) return;
        stream.sendHeaders(INFORMATIONAL, false);
        stream.sendHeaders(RESPONSE, false);
      },
      onData: (stream, chunk) => void stream.write(chunk),
      onEnd: (stream) =>
        isServer ? stream.sendHeaders(TRAILERS, true) : stream.end(),
    },
    { // Is done before the peer is.
      onHeaders: (stream) =>
        isServer ? stream.sendHeaders(RESPONSE, true) : stream.end(),
    },
    { onHeaders: drop },
    { onData: drop },
  ]);
}

/** The preface and what follows it are one record: without them all is over. */
function splitTalk(input: Uint8Array): Uint8Array[] {
  if (!isPreface(input)) return splitFrames(input);
  const [first = input.subarray(0, 0), ...frames] = splitFrames(
    input.subarray(PREFACE.length),
  );
  const openingBytes = PREFACE.length + first.length;
  return [input.subarray(0, openingBytes), ...frames];
}

function isPreface(bytes: Uint8Array): boolean {
  return PREFACE.every((byte, index) => bytes[index] === byte);
}

const SETTINGS: Frame = { type: "SETTINGS", ack: false, settings: [] };
const SETTINGS_ACK: Frame = { type: "SETTINGS", ack: true, settings: [] };

type Encode = (fields: readonly HeaderField[]) => Uint8Array;

/** Blocks that need each other, as peers send them. */
function sharedEncode(): Encode {
  const encoder = new HpackEncoder();
  return (fields) => encoder.encode(fields).slice();
}

/** Blocks that stand for themselves, so that frames can be moved and lost. */
function freshEncode(): Encode {
  return (fields) => new HpackEncoder().encode(fields);
}

/** What clients say. */
function clientTalk(block: Encode): Uint8Array[] {
  const get = REQUEST.slice(0, 4).with(0, { name: ":method", value: "GET" });
  const talks: Frame[][] = [
    [SETTINGS, SETTINGS_ACK, headers(1, block(get), true)],
    [
      SETTINGS,
      headers(3, block(REQUEST), false),
      data(3, "hello", false),
      SETTINGS_ACK,
      data(3, "", true),
    ],
    [
      SETTINGS,
      headers(5, block(REQUEST), false),
      headers(7, block(REQUEST), false),
      data(7, "seven", false),
      { type: "RST_STREAM", streamId: 5, errorCode: 8 },
      headers(7, block(TRAILERS), true),
      headers(9, block(get), true),
      { type: "GOAWAY", lastStreamId: 0, errorCode: 0, debugData: PREFACE },
    ],
    [SETTINGS, ...SAMPLE_FRAMES],
  ];
  return talks.map((frames) =>
    joinedBytes([PREFACE, ...frames.map(encodeFrame)])
  );
}

/** What servers say to requests on 1, 3 and 5. */
function serverTalk(block: Encode): Uint8Array[] {
  const talks: Frame[][] = [
    [
      SETTINGS,
      SETTINGS_ACK,
      headers(1, block(INFORMATIONAL), false),
      headers(1, block(RESPONSE), false),
      data(1, "hello", false),
      headers(1, block(TRAILERS), true),
      headers(3, block([...RESPONSE, ...TRAILERS]), true),
      headers(5, block(RESPONSE), false),
      data(5, "x".repeat(300), true),
    ],
    [
      SETTINGS,
      { type: "GOAWAY", lastStreamId: 3, errorCode: 0, debugData: PREFACE },
      { type: "RST_STREAM", streamId: 1, errorCode: 7 },
      headers(3, block(RESPONSE), true),
    ],
    [SETTINGS, ...SAMPLE_FRAMES],
  ];
  return talks.map((frames) => joinedBytes(frames.map(encodeFrame)));
}

function headers(
  streamId: number,
  fragment: Uint8Array,
  endStream: boolean,
): Frame {
  return { type: "HEADERS", streamId, endStream, endHeaders: true, fragment };
}

function data(streamId: number, text: string, endStream: boolean): Frame {
  const payload = new TextEncoder().encode(text);
  const { length } = payload;
  return {
    type: "DATA",
    streamId,
    endStream,
    data: payload,
    isFirst: true,
    flowBytes: length,
    paddingBytes: 0,
  };
}

/** The engine as a server, the peer as a client. */
export const CONNECTION_SERVER: FuzzTarget = connectionTarget("server");

/** The engine as a client with open requests, the peer as a server. */
export const CONNECTION_CLIENT: FuzzTarget = connectionTarget("client");
