import { assertEquals } from "@std/assert";
import { Tally } from "../../tests/support/watch/tally.ts";
import { assess, readReport } from "./h2spec.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="3.5. Preface" package="http2/3.5" tests="2">
    <testcase package="http2/3.5" classname="Sends a client preface" time="0.1"></testcase>
    <testcase package="http2/3.5" classname="Sends &#34;junk&#34;" time="0.0008">
      <error>Connection closed
Error: a frame</error>
    </testcase>
    <testcase package="http2/3.5" classname="Waits" time="0"><skipped></skipped></testcase>
  </testsuite>
</testsuites>`;

Deno.test("readReport() tells passed, failed and skipped cases apart", () => {
  assertEquals(readReport(REPORT), [
    {
      section: "http2/3.5",
      title: "Sends a client preface",
      outcome: "passed",
      details: "",
    },
    {
      section: "http2/3.5",
      title: 'Sends "junk"',
      outcome: "failed",
      details: "Connection closed\nError: a frame",
    },
    {
      section: "http2/3.5",
      title: "Waits",
      outcome: "skipped",
      details: "",
    },
  ]);
});

Deno.test("assess() counts what was skipped, and too few cases, as failures", () => {
  const tally = new Tally(() => {});
  assess("x", readReport(REPORT), tally);
  assertEquals([tally.passed, tally.failed, tally.skipped], [1, 3, 0]);
});
