import { checkHistories } from "../../../tests/support/xds/discovery_history.ts";

Deno.test("in many histories, a client ends up with what there is and receives nothing without a cause", () => {
  checkHistories(1_000, 10_000);
});
