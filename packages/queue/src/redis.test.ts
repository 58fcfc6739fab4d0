import { Redis } from "ioredis";
import pg from "pg";
import { describeQueue } from "../testing/conformance.ts";
import { startRedis } from "../testing/redis.ts";
import { connectQueue } from "./connection.ts";

describeQueue({
  name: "Redis",
  start: startRedis,
  stored: async (server, queue) => {
    const client = new Redis(server.url);
    try {
      const keys = await client.keys(`rolldeck:${queue}:*`);
      const kinds = await Promise.all(keys.map((key) => client.type(key)));
      const hashes = keys.filter((_, at) => kinds[at] === "hash");
      const names = await Promise.all(hashes.map((key) => client.hexists(key, "name")));
      return names.filter((there) => there === 1).length;
    } finally {
      client.disconnect();
    }
  },
  // The pool is never connected: with Redis the database carries no jobs.
  connect: (server) => connectQueue({ redisUrl: server.url, pool: new pg.Pool() }),
});
