import pg from "pg";
import { describeQueue } from "../testing/conformance.ts";
import { startRedis } from "../testing/redis.ts";
import { connectQueue } from "./connection.ts";

describeQueue({
  name: "Redis",
  start: startRedis,
  // The pool is never connected: with Redis the database carries no jobs.
  connect: (server) => connectQueue({ redisUrl: server.url, pool: new pg.Pool() }),
});
