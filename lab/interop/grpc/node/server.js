// deno-lint-ignore-file no-console -- prints for whoever started it.
// grpc-js as a server of the test service. Prints "listening PORT".
"use strict";

const grpc = require("@grpc/grpc-js");
const { SERVICE } = require("./service.js");

const MESSAGE_OCTETS_MAX = 8 * 1024 * 1024;

const server = new grpc.Server({
  "grpc.max_receive_message_length": MESSAGE_OCTETS_MAX,
});

let ended = 0;
const waiting = [];

function matchEnded() {
  while (ended > 0 && waiting.length > 0) {
    ended--;
    waiting.shift()();
  }
}

function custom(metadata) {
  const back = new grpc.Metadata();
  for (const name of Object.keys(metadata.getMap())) {
    if (!name.startsWith("x-")) continue;
    for (const value of metadata.get(name)) back.add(name, value);
  }
  return back;
}

function unary(call, callback) {
  const back = custom(call.metadata);
  call.sendMetadata(back);
  callback(null, call.request, back.clone());
}

/** Writes with back-pressure. */
async function write(call, message) {
  if (!call.write(message)) {
    await new Promise((resolve) => call.once("drain", resolve));
  }
}

server.addService(SERVICE, {
  Unary: unary,
  async Many(call) {
    const [count, octets] = call.request.toString().split(" ").map(Number);
    for (let index = 0; index < count; index++) {
      await write(call, Buffer.alloc(octets, index & 255));
    }
    call.end();
  },
  Sum(call, callback) {
    let count = 0;
    let octets = 0;
    call.on("data", (message) => {
      count++;
      octets += message.length;
    });
    call.on("end", () => callback(null, Buffer.from(`${count} ${octets}`)));
  },
  Bidi(call) {
    call.on("data", async (message) => {
      call.pause();
      await write(call, message);
      call.resume();
    });
    call.on("end", () => call.end());
  },
  Fail(call) {
    call.once("data", (message) => {
      const [, code, details] = /^(\d+) (.*)$/s.exec(message.toString());
      call.emit("error", { code: Number(code), details });
    });
  },
  Hang(call) {
    call.on("data", () => {});
    call.on("cancelled", () => {
      ended++;
      matchEnded();
    });
  },
  Ended(call, callback) {
    waiting.push(() => callback(null, call.request));
    matchEnded();
  },
  Goaway(call, callback) {
    server.tryShutdown(() => {});
    unary(call, callback);
  },
});

server.bindAsync(
  "127.0.0.1:0",
  grpc.ServerCredentials.createInsecure(),
  (error, port) => {
    if (error) throw error;
    console.log(`listening ${port}`);
  },
);
