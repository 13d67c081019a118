// deno-lint-ignore-file no-console -- prints for whoever started it.
// grpc-js as a client of the test service.
// Usage: client.js ADDRESS; prints "PASS name" or "FAIL name: why" per case.
"use strict";

const assert = require("node:assert/strict");
const grpc = require("@grpc/grpc-js");
const { SERVICE } = require("./service.js");

const CASE_TIMEOUT_MS = 20_000;
const MIB = 1024 * 1024;
const { status } = grpc;

const options = {
  "grpc.max_receive_message_length": 16 * MIB,
  "grpc.max_send_message_length": 16 * MIB,
};
const Client = grpc.makeClientConstructor(SERVICE, "Echo");
const client = new Client(
  process.argv[2],
  grpc.credentials.createInsecure(),
  options,
);

function deadline(ms = CASE_TIMEOUT_MS) {
  return { deadline: Date.now() + ms };
}

/** A unary call with all that comes back. */
function unary(name, request, metadata = new grpc.Metadata(), on = client) {
  return new Promise((resolve, reject) => {
    const seen = {};
    const call = on[name](request, metadata, deadline(), (error, answer) => {
      seen.answer = answer;
      if (error) reject(error);
    });
    call.on("metadata", (head) => seen.head = head);
    call.on("status", (end) => {
      seen.trailers = end.metadata;
      // The callback with the answer comes a turn later.
      setImmediate(() => resolve(seen));
    });
  });
}

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the call did not fail");
}

/** Reads messages of a streaming call one by one. */
function readerOf(call) {
  const iterator = call[Symbol.asyncIterator]();
  return {
    async next() {
      const { done, value } = await iterator.next();
      assert.equal(done, false, "the stream ended early");
      return value;
    },
    async end() {
      assert.equal((await iterator.next()).done, true, "there was more");
    },
  };
}

async function write(call, message) {
  if (!call.write(message)) {
    await new Promise((resolve) => call.once("drain", resolve));
  }
}

const pattern = (octets) => Buffer.from({ length: octets }, 0).fill("abcdefg");

async function receiveMany(count, octets) {
  const call = client.Many(Buffer.from(`${count} ${octets}`), deadline());
  let index = 0;
  for await (const message of call) {
    assert.equal(message.length, octets);
    assert.equal(message[octets - 1], index++ & 255);
  }
  assert.equal(index, count);
}

async function pingPong(call, reader, octets) {
  const message = pattern(octets);
  const [answer] = await Promise.all([reader.next(), write(call, message)]);
  assert.ok(answer.equals(message), "other octets came back");
}

async function finish(call, reader) {
  call.end();
  await reader.end();
}

// The last one ends the connection.
const CASES = {
  async "unary: nothing, little and 4 MiB come back"() {
    for (const octets of [0, 1, 16384, 65536, 4 * MIB]) {
      const { answer } = await unary("Unary", pattern(octets));
      assert.ok(answer.equals(pattern(octets)), `${octets} octets`);
    }
  },
  async "unary: 200 calls at once"() {
    await Promise.all(Array.from({ length: 200 }, async (_, index) => {
      const { answer } = await unary("Unary", Buffer.from(`call ${index}`));
      assert.equal(answer.toString(), `call ${index}`);
    }));
  },
  async "unary: gzip is read"() {
    const zipping = new Client(
      process.argv[2],
      grpc.credentials.createInsecure(),
      {
        ...options,
        "grpc.default_compression_algorithm": 2,
        "grpc.use_local_subchannel_pool": 1,
      },
    );
    const { answer } = await unary(
      "Unary",
      pattern(100_000),
      new grpc.Metadata(),
      zipping,
    );
    zipping.close();
    assert.ok(answer.equals(pattern(100_000)));
  },
  async "unary: an unknown compression is UNIMPLEMENTED"() {
    const deflating = new Client(
      process.argv[2],
      grpc.credentials.createInsecure(),
      {
        "grpc.default_compression_algorithm": 1,
        "grpc.use_local_subchannel_pool": 1,
      },
    );
    const error = await failure(
      unary("Unary", pattern(1000), new grpc.Metadata(), deflating),
    );
    deflating.close();
    assert.equal(error.code, status.UNIMPLEMENTED);
  },
  async "metadata: text and octets come back in head and trailers"() {
    const metadata = new grpc.Metadata();
    metadata.add("x-text", "a b");
    metadata.add("x-text", "second");
    metadata.add("x-octets-bin", Buffer.from([0, 255, 16]));
    metadata.add("x-octets-bin", Buffer.from([1]));
    const { head, trailers } = await unary("Unary", Buffer.alloc(0), metadata);
    for (const back of [head, trailers]) {
      assert.deepEqual(back.get("x-text").join("|").split(/\||, /), [
        "a b",
        "second",
      ]);
      assert.deepEqual(back.get("x-octets-bin"), [
        Buffer.from([0, 255, 16]),
        Buffer.from([1]),
      ]);
    }
  },
  async "status: every code with a message beyond ASCII"() {
    for (let code = 1; code <= 16; code++) {
      const text = `größer als 100% ☃😀\n(${code})`;
      const call = client.Fail(new grpc.Metadata(), deadline());
      call.end(Buffer.from(`${code} ${text}`));
      const error = await failure(readerOf(call).next());
      assert.deepEqual([error.code, error.details], [code, text]);
    }
  },
  async "status: an unknown method is UNIMPLEMENTED"() {
    const identity = (octets) => octets;
    const error = await failure(
      new Promise((resolve, reject) =>
        client.makeUnaryRequest(
          "/interop.Echo/Nothing",
          identity,
          identity,
          Buffer.alloc(0),
          (error) => error ? reject(error) : resolve(),
        )
      ),
    );
    assert.equal(error.code, status.UNIMPLEMENTED);
    assert.match(error.details, /Nothing/);
  },
  "server streaming: 1000 messages": () => receiveMany(1000, 5000),
  "server streaming: three of 4 MiB": () => receiveMany(3, 4 * MIB),
  async "client streaming: 1000 messages"() {
    const answer = await new Promise((resolve, reject) => {
      const call = client.Sum(
        new grpc.Metadata(),
        deadline(),
        (error, answer) => error ? reject(error) : resolve(answer),
      );
      (async () => {
        for (let left = 1000; left > 0; left--) {
          await write(call, pattern(5000));
        }
        call.end();
      })();
    });
    assert.equal(answer.toString(), "1000 5000000");
  },
  async "bidi: ping-pong, then half-close"() {
    const call = client.Bidi(new grpc.Metadata(), deadline());
    const reader = readerOf(call);
    for (let round = 0; round < 200; round++) {
      await pingPong(call, reader, round * 10);
    }
    await finish(call, reader);
  },
  async "bidi: 4 MiB each way"() {
    const call = client.Bidi(new grpc.Metadata(), deadline());
    const reader = readerOf(call);
    await pingPong(call, reader, 4 * MIB);
    await pingPong(call, reader, 4 * MIB);
    await finish(call, reader);
  },
  async "bidi: an error while the client is sending"() {
    const call = client.Fail(new grpc.Metadata(), deadline());
    const failed = failure(readerOf(call).next());
    const timer = setInterval(() => call.write(Buffer.from("9 stop")), 1);
    const error = await failed;
    clearInterval(timer);
    assert.equal(error.code, status.FAILED_PRECONDITION);
  },
  async "cancel: the server hears of it"() {
    const call = client.Hang(new grpc.Metadata(), deadline());
    const failed = failure(readerOf(call).next());
    call.write(Buffer.from("x"), () => setTimeout(() => call.cancel(), 20));
    assert.equal((await failed).code, status.CANCELLED);
    await unary("Ended", Buffer.alloc(0));
  },
  async "deadline: both sides keep it"() {
    const call = client.Hang(new grpc.Metadata(), deadline(50));
    const error = await failure(readerOf(call).next());
    assert.equal(error.code, status.DEADLINE_EXCEEDED);
    await unary("Ended", Buffer.alloc(0));
  },
  async "limit: 9 MiB are RESOURCE_EXHAUSTED"() {
    const error = await failure(unary("Unary", pattern(9 * MIB)));
    assert.equal(error.code, status.RESOURCE_EXHAUSTED);
    assert.match(error.details, /8388608/);
  },
  async "goaway: what runs is finished"() {
    const call = client.Bidi(new grpc.Metadata(), deadline());
    const reader = readerOf(call);
    await pingPong(call, reader, 10);
    await unary("Goaway", Buffer.alloc(0));
    for (let round = 0; round < 20; round++) {
      await pingPong(call, reader, 50_000);
    }
    await finish(call, reader);
  },
};

async function main() {
  for (const [name, run] of Object.entries(CASES)) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error("took too long")),
        CASE_TIMEOUT_MS + 1000,
      );
    });
    try {
      await Promise.race([run(), late]);
      console.log(`PASS ${name}`);
    } catch (error) {
      console.log(`FAIL ${name}: ${error.message.replaceAll("\n", " ")}`);
      process.exitCode = 1;
    }
    clearTimeout(timer);
  }
  client.close();
}

main();
