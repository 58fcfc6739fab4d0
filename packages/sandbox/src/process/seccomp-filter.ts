/**
 * What a sandboxed process may not ask of the kernel, as a seccomp program in bytes. Invariants: another architecture's calls kill;
 * no new namespaces, mounts, keys, kernel modules, tracing or asynchronous rings; `clone3` is said not to exist, so that libraries
 * fall back to `clone`, whose flags can be looked at. What Docker's default profile denies to a container without capabilities.
 */
export type FilterArchitecture = "x64" | "arm64";

/** Numbers of a system call on both architectures; null where it does not exist. */
type Numbers = readonly [x64: number | null, arm64: number | null];

const denied: Readonly<Record<string, Numbers>> = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  process_madvise: [440, 440],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  setns: [308, 268],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  fanotify_init: [300, 262],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  syslog: [103, 116],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  vhangup: [153, 58],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  create_module: [174, null],
  get_kernel_syms: [177, null],
  query_module: [178, null],
};

const machines = {
  x64: { audit: 0xc000003e, column: 0, clone: 56, clone3: 435, unshare: 272, ioctl: 16, socket: 41 },
  arm64: { audit: 0xc00000b7, column: 1, clone: 220, clone3: 435, unshare: 97, ioctl: 29, socket: 198 },
} as const;

/** mount, cgroup, uts, ipc, user, pid and net namespaces. */
const namespaceFlags = 0x7e020000;
/** Typing into a terminal that someone else reads, two ways. */
const terminalTricks = [0x5412, 0x541c];
/** Sockets that lead around the network namespace: to the hypervisor, to the kernel's ciphers. */
const strangeFamilies = [40, 38];

const code = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, answer: 0x06 } as const;
const answers = { allow: 0x7fff0000, kill: 0x80000000, notPermitted: 0x00050001, noSuchCall: 0x00050026 } as const;
const offsets = { number: 0, machine: 4, firstArgument: 16, secondArgument: 24 } as const;

interface Instruction {
  readonly code: number;
  readonly yes: number;
  readonly no: number;
  readonly value: number;
}
const load = (value: number): Instruction => ({ code: code.load, yes: 0, no: 0, value });
const answer = (value: number): Instruction => ({ code: code.answer, yes: 0, no: 0, value });
/** The next instruction where it holds, else the one after that. */
const when = (test: number, value: number): Instruction => ({ code: test, yes: 0, no: 1, value });

/** `struct sock_filter`s, eight bytes each, in the machine's byte order (little on both). */
export function seccompFilter(architecture: FilterArchitecture): Uint8Array {
  const machine = machines[architecture];
  const program: Instruction[] = [
    load(offsets.machine),
    { ...when(code.equal, machine.audit), yes: 1, no: 0 },
    answer(answers.kill),
    load(offsets.number),
  ];
  // The 32-bit pointers' calls on a 64-bit machine have numbers of their own.
  if (architecture === "x64") program.push(when(code.atLeast, 0x40000000), answer(answers.noSuchCall));
  for (const numbers of Object.values(denied)) {
    const number = numbers[machine.column];
    if (number !== null) program.push(when(code.equal, number), answer(answers.notPermitted));
  }
  program.push(when(code.equal, machine.clone3), answer(answers.noSuchCall));
  const flags = [when(code.anyBit, namespaceFlags)];
  program.push(...argumentRule(machine.clone, offsets.firstArgument, flags));
  program.push(...argumentRule(machine.unshare, offsets.firstArgument, flags));
  program.push(
    ...argumentRule(
      machine.ioctl,
      offsets.secondArgument,
      terminalTricks.map((trick) => when(code.equal, trick)),
    ),
  );
  program.push(
    ...argumentRule(
      machine.socket,
      offsets.firstArgument,
      strangeFamilies.map((family) => when(code.equal, family)),
    ),
  );
  program.push(answer(answers.allow));
  return encoded(program);
}

/** A call that is denied when one of the tests of one argument holds, and allowed otherwise. */
function argumentRule(number: number, offset: number, tests: readonly Instruction[]): Instruction[] {
  const body = [load(offset), ...tests.flatMap((test) => [test, answer(answers.notPermitted)]), answer(answers.allow)];
  return [{ code: code.equal, yes: 0, no: body.length, value: number }, ...body];
}

function encoded(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach((instruction, index) => {
    bytes.writeUInt16LE(instruction.code, index * 8);
    bytes.writeUInt8(instruction.yes, index * 8 + 2);
    bytes.writeUInt8(instruction.no, index * 8 + 3);
    bytes.writeUInt32LE(instruction.value, index * 8 + 4);
  });
  return bytes;
}
