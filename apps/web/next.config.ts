import path from "node:path";
import type { NextConfig } from "next";

/** Repository root: workspace packages are read as TypeScript sources from there. */
const root = path.resolve(process.cwd(), "../..");

const config: NextConfig = {
  transpilePackages: ["@rolldeck/contracts", "@rolldeck/realtime"],
  turbopack: { root },
  images: { unoptimized: true },
  poweredByHeader: false,
  reactStrictMode: true,
  devIndicators: false,
  // Types have their own gate (`npm run typecheck`); the build stays quick and needs no other package to compile.
  typescript: { ignoreBuildErrors: true },
};

export default config;
