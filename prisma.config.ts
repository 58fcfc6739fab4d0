import { defineConfig } from "prisma/config";

export default defineConfig({
  schema: "prisma/schema.prisma",
  migrations: { path: "prisma/migrations" },
  // Only `prisma migrate` needs it; the product hands its own URL to the client.
  datasource: { url: process.env.ROLLDECK_DATABASE_URL ?? "postgresql://127.0.0.1:1/unset" },
});
