// deno-lint-ignore-file no-console -- prints its port for whoever started it.
/**
 * Our gRPC layer as a server of the test service, over plain TCP (h2c with
 * prior knowledge). Prints `listening PORT`.
 *
 * Usage: `deno run --allow-net lab/interop/grpc/our_server.ts`
 *
 * @module
 */

import { openServerConnection } from "../../../net/http2/server_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { HealthService } from "../../../proto/grpc/health.ts";
import type {
  MethodHandler,
  ServerCall,
  ServerCallEvents,
} from "../../../proto/grpc/call.ts";
import {
  encodingOf,
  MessageReader,
  OnlyMessage,
} from "../../../proto/grpc/message_reader.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { GrpcError, type StatusCode } from "../../../proto/grpc/status.ts";

const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;

/** Credit is held back while more than this waits to be sent. */
const KEPT_BYTES_MAX = 256 * 1024;

const OK = { code: 0, message: "" } as const;

/** Hangs that have ended, and who waits for one. */
class Endings {
  #count = 0;
  readonly #waiting: (() => void)[] = [];

  ended(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#count++;
    else next();
  }

  onNext(then: () => void): void {
    if (this.#count === 0) {
      this.#waiting.push(then);
      return;
    }
    this.#count--;
    then();
  }
}

const endings = new Endings();

/** @param goAway Starts a graceful end of the connection. */
function echoMethods(
  goAway: () => void,
): Readonly<Record<string, MethodHandler>> {
  return {
    "/interop.Echo/Unary": unary,
    "/interop.Echo/Many": many,
    "/interop.Echo/Sum": sum,
    "/interop.Echo/Bidi": bidi,
    "/interop.Echo/Fail": fail,
    "/interop.Echo/Hang": hang,
    "/interop.Echo/Ended": (call) =>
      withOnly(call, (message) => {
        endings.onNext(() => {
          call.sendMessage(message);
          call.finish(OK);
        });
      }),
    "/interop.Echo/Goaway": (call) => {
      goAway();
      return unary(call);
    },
  };
}

/** Handles a call whose request is one message. */
function withOnly(
  call: ServerCall,
  then: (message: Uint8Array) => void,
  onWritable = () => {},
): ServerCallEvents {
  const only = new OnlyMessage("request", MESSAGE_BYTES_MAX);
  only.expect(encodingOf(call.metadata));
  return {
    onBody(chunk) {
      call.consumed(chunk.length);
      only.push(chunk);
    },
    onHalfClose: () => then(only.take()),
    onWritable,
    onCancel() {},
  };
}

function unary(call: ServerCall): ServerCallEvents {
  const back = new Metadata();
  for (const [name, value] of call.metadata) {
    if (name.startsWith("x-")) back.add(name, value);
  }
  call.sendMetadata(back);
  return withOnly(call, (message) => {
    call.sendMessage(message);
    call.finish(OK, back);
  });
}

function many(call: ServerCall): ServerCallEvents {
  let left = 0;
  let bytes = 0;
  let sent = 0;
  const pump = () => {
    while (left > 0) {
      left--;
      const message = new Uint8Array(bytes).fill(sent++);
      if (!call.sendMessage(message)) return;
    }
    call.finish(OK);
  };
  return withOnly(call, (message) => {
    [left = 0, bytes = 0] = textOf(message).split(" ").map(Number);
    pump();
  }, pump);
}

function sum(call: ServerCall): ServerCallEvents {
  let count = 0;
  let bytes = 0;
  return reading(call, (message) => {
    count++;
    bytes += message.length;
  }, () => {
    call.sendMessage(new TextEncoder().encode(`${count} ${bytes}`));
    call.finish(OK);
  });
}

function bidi(call: ServerCall): ServerCallEvents {
  return reading(
    call,
    (message) => void call.sendMessage(message),
    () => call.finish(OK),
  );
}

function fail(call: ServerCall): ServerCallEvents {
  return reading(call, (message) => {
    const [, code, text] = /^(\d+) (.*)$/s.exec(textOf(message))!;
    throw new GrpcError(Number(code) as StatusCode, text!);
  }, () => {});
}

function hang(): ServerCallEvents {
  return {
    onBody() {},
    onHalfClose() {},
    onWritable() {},
    onCancel: () => endings.ended(),
  };
}

/** Handles a call message by message, with back-pressure. */
function reading(
  call: ServerCall,
  onMessage: (message: Uint8Array) => void,
  onHalfClose: () => void,
): ServerCallEvents {
  let owedBytes = 0;
  const reader = new MessageReader({
    messageBytesMax: MESSAGE_BYTES_MAX,
    encoding: encodingOf(call.metadata),
    onMessage,
  });
  const settle = () => {
    if (call.keptBytes > KEPT_BYTES_MAX) return;
    call.consumed(owedBytes);
    owedBytes = 0;
  };
  return {
    onBody(chunk) {
      owedBytes += chunk.length;
      reader.push(chunk);
      settle();
    },
    onHalfClose() {
      reader.end();
      onHalfClose();
    },
    onWritable: settle,
    onCancel() {},
  };
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

const health = new HealthService();
health.setStatus("", "SERVING");
health.setStatus("interop.Echo", "SERVING");

function serve(socket: Deno.TcpConn): void {
  const methods = {
    ...echoMethods(() => connection.shutdown("asked to by a test")),
    ...health.methods,
  };
  const connection = openServerConnection(denoStream(socket), {
    serves: methods,
    timers: systemTimers,
    // Clients of these tests start 200 calls at once.
    settings: { maxConcurrentStreams: 1_000 },
  });
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(`listening ${listener.addr.port}`);
for await (const socket of listener) serve(socket);
