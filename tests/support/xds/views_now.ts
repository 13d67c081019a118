/**
 * A group's view of a catalog as of now, made at once however long that takes.
 *
 * @module
 */

import type { ClientGroup } from "../../../services/discovery/generate/client_group.ts";
import type { Unserved } from "../../../services/discovery/generate/service_resources.ts";
import type { Views } from "../../../services/discovery/generate/views.ts";
import type { View } from "../../../services/discovery/view/view.ts";

export function viewNow(views: Views, group: ClientGroup): View {
  const steps = views.preparing(group);
  while (!steps.next().done);
  return views.viewOf(group)!;
}

export function unservedNow(
  views: Views,
  group: ClientGroup,
): readonly Unserved[] {
  viewNow(views, group);
  return views.unservedTo(group);
}
