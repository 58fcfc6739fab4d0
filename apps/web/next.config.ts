import path from "node:path";
import type { NextConfig } from "next";

/** Repository root: workspace packages are read as TypeScript sources from there. */
const root = path.resolve(process.cwd(), "../..");
const dev = process.env.NODE_ENV === "development";

/** Pages load nothing from elsewhere, whatever text they show: second line of defence behind rendering text as text. */
const contentSecurityPolicy = [
  "default-src 'self'",
  // Next starts its pages with inline scripts; its development server also evaluates.
  `script-src 'self' 'unsafe-inline'${dev ? " 'unsafe-eval'" : ""}`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "connect-src 'self' ws: wss:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const config: NextConfig = {
  transpilePackages: ["@rolldeck/contracts", "@rolldeck/realtime"],
  turbopack: { root },
  images: { unoptimized: true },
  poweredByHeader: false,
  reactStrictMode: true,
  devIndicators: false,
  // Types have their own gate (`npm run typecheck`); the build stays quick and needs no other package to compile.
  typescript: { ignoreBuildErrors: true },
  headers: async () => [
    {
      source: "/:path*",
      headers: [
        { key: "Content-Security-Policy", value: contentSecurityPolicy },
        { key: "X-Content-Type-Options", value: "nosniff" },
        { key: "Referrer-Policy", value: "same-origin" },
      ],
    },
  ],
};

export default config;
