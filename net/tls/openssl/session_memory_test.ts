import { assertEquals, assertThrows } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import {
  clientContext,
  LIBSSL,
} from "../../../tests/support/memory/secure_pair.ts";
import { SslError } from "../trust/ssl_error.ts";
import {
  allocateSession,
  enlargeRings,
  releaseSession,
} from "./session_memory.ts";

Deno.test({
  name: "nobody writes into a ring that was given back when there is no other",
  ignore: LIBSSL === undefined,
  fn: async () => {
    const { ca } = await certificates();
    const library = LIBSSL!;
    const material = { cert: "", key: "", ca };
    const memory = allocateSession(clientContext({ material }));
    const without = Object.create(library, {
      BIO_ctrl: {
        value: (...words: Parameters<typeof library.BIO_ctrl>) =>
          words[1] === MAKE_BIO_PAIR ? 0n : library.BIO_ctrl(...words),
      },
    });
    assertThrows(() => enlargeRings(without, memory), SslError);
    assertEquals([memory.input.length, memory.output], [0, undefined]);
    releaseSession(library, memory);
  },
});

/** From `openssl/bio.h`. */
const MAKE_BIO_PAIR = 138;
