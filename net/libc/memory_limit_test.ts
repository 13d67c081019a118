import { assertEquals } from "@std/assert";
import { memoryLimitBytes } from "./memory_limit.ts";

function limitWith(files: Readonly<Record<string, string>>): number {
  const all = new Map(Object.entries(files));
  return memoryLimitBytes((path) => all.get(path));
}

const GROUP = "/proc/self/cgroup";

Deno.test("the limit of a group is read, and the lowest of those above it", () => {
  assertEquals(
    limitWith({
      [GROUP]: "0::/kubepods/pod1/c2\n",
      "/sys/fs/cgroup/kubepods/pod1/c2/memory.max": "max\n",
      "/sys/fs/cgroup/kubepods/pod1/memory.max": "67108864\n",
      "/sys/fs/cgroup/kubepods/memory.max": "1073741824\n",
    }),
    67_108_864,
  );
});

Deno.test("a container's own group is at the top", () => {
  const max = "/sys/fs/cgroup/memory.max";
  // With a namespace of groups, and without one.
  for (const path of ["/", "/docker/4f", "/../../c2"]) {
    const files = { [GROUP]: `0::${path}\n`, [max]: "50331648\n" };
    assertEquals(limitWith(files), 50_331_648);
  }
});

Deno.test("the limit of a group of the first version is read", () => {
  const folder = "/sys/fs/cgroup/memory";
  for (const controllers of ["memory", "cpu,memory", "memory,cpu"]) {
    assertEquals(
      limitWith({
        [GROUP]: `9:pids:/a\n4:${controllers}:/a/b\n0::/\n`,
        [`${folder}/a/b/memory.limit_in_bytes`]: "50331648\n",
        [`${folder}/a/memory.limit_in_bytes`]: "9223372036854771712\n",
      }),
      50_331_648,
    );
  }
});

Deno.test("no limit is infinite, whatever the files say", () => {
  assertEquals(limitWith({}), Infinity);
  assertEquals(limitWith({ [GROUP]: "nonsense" }), Infinity);
  assertEquals(
    limitWith({ [GROUP]: "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n" }),
    Infinity,
  );
  assertEquals(memoryLimitBytes() > 0, true);
});
