import { checkHistories } from "../../../tests/support/discovery_history.ts";

Deno.test("whatever happens, a client ends up with what there is and hears nothing without a cause, in many histories", () => {
  checkHistories(1_000, 10_000);
});
