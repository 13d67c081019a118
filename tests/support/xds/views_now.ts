/**
 * A group's view of a catalog as of now, made at once however long that takes;
 * clients would take all of it.
 *
 * @module
 */

import type { ClientGroup } from "../../../services/discovery/generate/client_group.ts";
import type { Unserved } from "../../../services/discovery/generate/service_resources.ts";
import type { Views } from "../../../services/discovery/generate/views.ts";
import { assertTaken } from "./rules/validation.ts";
import type { View } from "../../../services/discovery/view/view.ts";

export function viewNow(views: Views, group: ClientGroup): View {
  const steps = views.preparing(group);
  while (!steps.next().done);
  const view = views.viewOf(group)!;
  for (const resources of Object.values(view.resources)) {
    for (const resource of resources.values()) assertTaken(resource);
  }
  return view;
}

export function unservedNow(
  views: Views,
  group: ClientGroup,
): readonly Unserved[] {
  viewNow(views, group);
  return views.unservedTo(group);
}
