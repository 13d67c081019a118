import { checkHistories } from "../../../tests/support/xds/discovery_history.ts";

Deno.test("whatever happens, a client ends up with what there is and receives nothing without a cause", () => {
  checkHistories(1, 500);
});

/** Histories that once broke something, here or in the model. */
const FOUND = [
  18_213,
  23_855,
  67_924,
  91_380,
  97_837,
  401_468,
  508_787,
  704_437,
];

Deno.test("histories that broke something once hold", () => {
  for (const seed of FOUND) checkHistories(seed, 1);
});
