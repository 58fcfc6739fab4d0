/**
 * A program of a few hundred bytes that every command of a sandbox passes through: it gives up new privileges, takes on the
 * seccomp filter, and becomes the program of its arguments (an absolute path). No tool that Debian always has can do that to a
 * process that joins namespaces. It lies in the sandbox as a file that can be run and not read, so that until the filter is on
 * nobody in there may look into it or change it.
 *
 * Both machine codes are: prctl(NO_NEW_PRIVS, 1, 0, 0, 0); prctl(SECCOMP, FILTER, program); execve(argv[1], argv + 1, environment);
 * and exit(127) when one of them fails.
 */
import { type FilterArchitecture, seccompFilter } from "./seccomp-filter.ts";

const loadAddress = 0x400000;
const headersBytes = 64 + 56;

/** The file's bytes: an ELF program with one segment, which is never writable. */
export function enterProgram(architecture: FilterArchitecture): Uint8Array {
  const filter = seccompFilter(architecture);
  const machine = machineCode[architecture];
  const codeBytes = align(machine(0).length);
  const programAt = loadAddress + headersBytes + codeBytes;
  const whole = Buffer.alloc(headersBytes + codeBytes + 16 + filter.length);
  headers(architecture, whole.length).copy(whole);
  Buffer.from(machine(programAt)).copy(whole, headersBytes);
  // struct sock_fprog: how many instructions, and where.
  whole.writeUInt16LE(filter.length / 8, headersBytes + codeBytes);
  whole.writeBigUInt64LE(BigInt(programAt + 16), headersBytes + codeBytes + 8);
  Buffer.from(filter).copy(whole, headersBytes + codeBytes + 16);
  return whole;
}

const align = (bytes: number): number => Math.ceil(bytes / 16) * 16;

function headers(architecture: FilterArchitecture, fileBytes: number): Buffer {
  const bytes = Buffer.alloc(headersBytes);
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(bytes);
  bytes.writeUInt16LE(2, 16); // an executable
  bytes.writeUInt16LE(architecture === "x64" ? 62 : 183, 18);
  bytes.writeUInt32LE(1, 20);
  bytes.writeBigUInt64LE(BigInt(loadAddress + headersBytes), 24); // its first instruction
  bytes.writeBigUInt64LE(64n, 32); // the segment table
  bytes.writeUInt16LE(64, 52);
  bytes.writeUInt16LE(56, 54);
  bytes.writeUInt16LE(1, 56);
  bytes.writeUInt16LE(64, 58);
  bytes.writeUInt32LE(1, 64); // loaded
  bytes.writeUInt32LE(5, 68); // read and run
  bytes.writeBigUInt64LE(BigInt(loadAddress), 80);
  bytes.writeBigUInt64LE(BigInt(loadAddress), 88);
  bytes.writeBigUInt64LE(BigInt(fileBytes), 96);
  bytes.writeBigUInt64LE(BigInt(fileBytes), 104);
  bytes.writeBigUInt64LE(0x10000n, 112);
  return bytes;
}

const machineCode: Readonly<Record<FilterArchitecture, (programAt: number) => Uint8Array>> = {
  x64: x64Code,
  arm64: arm64Code,
};

function x64Code(programAt: number): Uint8Array {
  const movEax = (value: number) => [0xb8, ...little32(value)];
  const movEdi = (value: number) => [0xbf, ...little32(value)];
  const movEsi = (value: number) => [0xbe, ...little32(value)];
  const syscall = [0x0f, 0x05];
  const zeros = [0x31, 0xd2, 0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0]; // edx, r10d, r8d
  const second = [
    ...[...movEax(157), ...movEdi(22), ...movEsi(2)],
    ...[0xba, ...little32(programAt)], // mov edx: the address is below 4 GiB
    ...syscall,
  ];
  const third = [
    ...[0x48, 0x8b, 0x0c, 0x24], // mov rcx, [rsp]: argc
    ...[0x48, 0x8d, 0x74, 0x24, 0x10], // lea rsi, [rsp + 16]: argv + 1
    ...[0x48, 0x8b, 0x3e], // mov rdi, [rsi]
    ...[0x48, 0x8d, 0x54, 0xcc, 0x10], // lea rdx, [rsp + rcx * 8 + 16]: environment
    ...[...movEax(59), ...syscall],
  ];
  const fail = [...movEdi(127), ...movEax(60), ...syscall];
  const unlessZero = (toFail: number) => [0x85, 0xc0, 0x75, toFail]; // test eax, eax; jnz
  return Uint8Array.from([
    ...[...movEax(157), ...movEdi(38), ...movEsi(1), ...zeros, ...syscall],
    ...unlessZero(second.length + 4 + third.length),
    ...second,
    ...unlessZero(third.length),
    ...third,
    ...fail,
  ]);
}

function arm64Code(programAt: number): Uint8Array {
  const mov = (register: number, value: number) => 0xd2800000 + (value << 5) + register;
  const movHigh = (register: number, value: number) => 0xf2a00000 + (value << 5) + register;
  const call = 0xd4000001;
  const second = [mov(0, 22), mov(1, 2), mov(2, programAt & 0xffff), movHigh(2, programAt >>> 16), mov(8, 167), call];
  const third = [
    0xf94003e9, // ldr x9, [sp]: argc
    0x910043e1, // add x1, sp, #16: argv + 1
    0xf9400020, // ldr x0, [x1]
    0x8b090c22, // add x2, x1, x9, lsl #3: environment
    ...[mov(8, 221), call],
  ];
  const fail = [mov(0, 127), mov(8, 93), call];
  const unlessZero = (words: number) => 0xb5000000 + (words << 5); // cbnz x0
  const words = [
    ...[mov(0, 38), mov(1, 1), mov(2, 0), mov(3, 0), mov(4, 0), mov(8, 167), call],
    unlessZero(1 + second.length + 1 + third.length),
    ...second,
    unlessZero(1 + third.length),
    ...third,
    ...fail,
  ];
  return Uint8Array.from(words.flatMap(little32));
}

const little32 = (value: number): number[] => [
  value & 0xff,
  (value >>> 8) & 0xff,
  (value >>> 16) & 0xff,
  (value >>> 24) & 0xff,
];
