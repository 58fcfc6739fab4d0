import { maxEvidenceBytes } from "@rolldeck/contracts/api/artifacts";
import { FencedError, NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../testing/postgres.ts";
import { type SeededRollout, seedRollouts } from "../testing/seed-rollouts.ts";
import { listArtifacts, type NewArtifact, putArtifact, readArtifact } from "./artifacts.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const seeded = async (): Promise<SeededRollout> => {
  const { rollouts } = await seedRollouts(database.pool, { count: 1 });
  return rollouts[0] as SeededRollout;
};
const artifact = (rollout: SeededRollout, change: Partial<NewArtifact> = {}): NewArtifact => ({
  ...rollout,
  turn: 0,
  index: 0,
  name: "output.txt",
  mediaType: "text/plain",
  content: Buffer.from("a\0\ud800é"),
  wholeBytes: 1_000_000,
  ...change,
});
const output = { turn: 0, index: 0, name: "output.txt" };

test("an artifact comes back byte for byte, with the size of the whole", async () => {
  const rollout = await seeded();
  const content = Buffer.from([0, 255, 128, 10]);
  await putArtifact(database.pool, artifact(rollout, { content, wholeBytes: 5_000_000_000 }));
  const read = await readArtifact(database.pool, { rolloutId: rollout.rolloutId, ...output });
  expect(Buffer.from(read.content)).toEqual(content);
  expect(read.info).toMatchObject({ ...output, mediaType: "text/plain", bytes: 5_000_000_000, storedBytes: 4 });
});

test("written again it takes the place of the first", async () => {
  const rollout = await seeded();
  for (const text of ["first", "second"])
    await putArtifact(database.pool, artifact(rollout, { content: Buffer.from(text) }));
  const { artifacts } = await listArtifacts(database.pool, { rolloutId: rollout.rolloutId, after: -1 });
  expect(artifacts).toHaveLength(1);
  const { content } = await readArtifact(database.pool, { rolloutId: rollout.rolloutId, ...output });
  expect(Buffer.from(content).toString()).toBe("second");
});

test("only the claim's holder writes", async () => {
  const rollout = await seeded();
  const wrong: Partial<NewArtifact>[] = [{ claim: 2 }, { attempt: 2 }, { runId: "other" }, { rolloutId: "nobody" }];
  for (const change of wrong)
    await expect(putArtifact(database.pool, artifact(rollout, change))).rejects.toBeInstanceOf(FencedError);
  await database.pool.query("update rollouts set state = 'settled' where id = $1", [rollout.rolloutId]);
  await expect(putArtifact(database.pool, artifact(rollout))).rejects.toBeInstanceOf(FencedError);
  expect((await listArtifacts(database.pool, { rolloutId: rollout.rolloutId, after: -1 })).artifacts).toEqual([]);
});

test("what should not be asked for is refused", async () => {
  const rollout = await seeded();
  const large = Buffer.alloc(maxEvidenceBytes + 1);
  await expect(putArtifact(database.pool, artifact(rollout, { content: large }))).rejects.toThrow(RangeError);
  for (const name of ["", "../x", "a/b", ".hidden", "a b", 'x"\r\n', "x".repeat(101)])
    await expect(putArtifact(database.pool, artifact(rollout, { name }))).rejects.toThrow(RangeError);
});

test("a list is in order, goes on after a turn and ends with one", async () => {
  const rollout = await seeded();
  const { rolloutId } = rollout;
  await putArtifact(database.pool, artifact(rollout, { turn: 3, name: "b" }));
  await putArtifact(database.pool, artifact(rollout, { turn: 3, name: "a" }));
  await putArtifact(database.pool, artifact(rollout, { turn: 1, index: 1 }));
  const names = async (after: number) => {
    const { artifacts, more } = await listArtifacts(database.pool, { rolloutId, after });
    return [artifacts.map(({ turn, index, name }) => `${turn}.${index} ${name}`), more];
  };
  expect(await names(-1)).toEqual([["1.1 output.txt", "3.0 a", "3.0 b"], false]);
  expect(await names(1)).toEqual([["3.0 a", "3.0 b"], false]);
  await database.pool.query(
    `insert into artifacts (rollout_id, attempt, turn, index, name, media_type, bytes, stored_bytes, content)
     select $1, 1, 4 + n / 400, 0, 'x' || n, 'text/plain', 0, 0, '' from generate_series(0, 1199) n`,
    [rolloutId],
  );
  const first = await listArtifacts(database.pool, { rolloutId, after: -1 });
  expect([first.artifacts.at(-1)?.turn, first.artifacts.length, first.more]).toEqual([5, 803, true]);
  const last = await listArtifacts(database.pool, { rolloutId, after: 5 });
  expect([last.artifacts.length, last.more]).toEqual([400, false]);
});

test("what is not there is not found", async () => {
  const { rolloutId } = await seeded();
  await expect(readArtifact(database.pool, { rolloutId, ...output })).rejects.toBeInstanceOf(NotFoundError);
  await expect(listArtifacts(database.pool, { rolloutId, attempt: 2, after: -1 })).rejects.toBeInstanceOf(
    NotFoundError,
  );
  await expect(listArtifacts(database.pool, { rolloutId: "nobody", after: -1 })).rejects.toBeInstanceOf(NotFoundError);
});
