import { checkHistories } from "../../../tests/support/xds/discovery_history.ts";

Deno.test("whatever happens, a client ends up with what there is and hears nothing without a cause", () => {
  checkHistories(1, 500);
});
