/**
 * TUN9: the machine: ports, files, processes, clock.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const MACHINE = {
  TUN904: {
    slug: "listen-failed",
    title: "A port or socket could not be opened",
    means: "The sentence has the system's words. The program did not start; " +
      "a service's port is tried again.",
    causes: [
      "The program runs already, or another has that port.",
      "Ports below 1024 need a privilege; sockets need a folder that can " +
      "be written.",
      "The address is not this machine's, or its interface is not up yet.",
    ],
    mend: [
      "Change the flag that the line names; `ss -lntup` shows who " +
      "listens, `ip address` which addresses there are.",
      "`AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit, or a " +
      "higher port.",
    ],
    see: "operations.md",
  },
  TUN905: {
    slug: "file-unkept",
    title: "A log, or a file kept across restarts, cannot be written",
    means:
      "The program works with what is in its memory. After a restart that " +
      "is gone: a node whose key is unwritten must join again, one " +
      "without the new CAs is locked out when the old ones retire, and " +
      "announcements have to come again. Lines of logs wait in memory, and " +
      "what finds no room is dropped.",
    causes: [
      "A full disk: logs, or other programs' files.",
      "A read-only file system: mounted so, or the kernel found errors.",
      "The owner or mode of the state directory.",
      "The state cannot be written now: see its own lines.",
      "Nothing reads standard error: a log collector that was stopped.",
    ],
    mend: [
      "Put right what the line names; it is tried again.",
      "Make room: `df -h`, `df -i`, `du -xhd1 /`.",
      "Read-only: see `dmesg`; mount it with `rw`, or name another directory.",
    ],
    see: "operations.md",
  },
  TUN906: {
    slug: "kept-file-unusable",
    title: "A file that was kept across restarts cannot be used",
    means: "The program creates it again, requests a new certificate, or " +
      "starts as if the file were not there.",
    causes: [
      "The file is damaged, is missing, or is of a newer version.",
      "The agent's name or addresses have changed.",
    ],
    mend: ["Nothing; but find out which person or program changed it."],
    see: "operations.md",
  },
  TUN907: {
    slug: "slip",
    title: "An error in our own code",
    means: "One connection, stream or task was ended; all else goes on. The " +
      "log has a stack.",
    causes: ["A slip in our code."],
    mend: ["`tunnel support-bundle`, and report it."],
    see: "operations.md",
  },
  TUN908: {
    slug: "worker-ended",
    title: "A worker process has ended or does not answer",
    means:
      "The connections of one that ended are lost, and another takes its " +
      "place; others accept in the place of one that is silent. Workers " +
      "whose parent has ended accept nothing more.",
    causes: [
      "The system killed it: out of memory?",
      "An overloaded machine, or a stopped process.",
      "A slip in our code.",
    ],
    mend: [
      "`dmesg | grep -i oom`; see the lines before.",
      "Start the program again if its parent has ended.",
    ],
    see: "operations.md",
  },
  TUN913: {
    slug: "upgrade-failed",
    title: "The new process did not take over",
    means:
      "The old one goes on; nothing is lost. Or there is no process here " +
      "that can be replaced.",
    causes: [
      "The new file or its flags do not work.",
      "A program with this state or these ports runs already: `--replace` " +
      "takes its place.",
      "It took too long.",
      "The process runs elsewhere, as another user, or could not open the " +
      "socket for it.",
    ],
    mend: [
      "Start the new one by hand to see what it says.",
      "Give the same `--state-dir`, and run as its user.",
    ],
    see: "operations.md",
  },
  TUN916: {
    slug: "clock-wrong",
    title: "The clock is wrong",
    means: "Certificates seem expired or not yet valid.",
    causes: ["No time service.", "A machine that was suspended."],
    mend: ["`timedatectl set-ntp true`."],
    see: "operations.md",
  },
} as const satisfies Area;
