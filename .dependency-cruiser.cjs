/** The layers of the design: each part imports only lower ones; adapters never import each other. */
const pure = "^packages/(rl|dispatch)/src|^packages/agent/src/core";
const adapters = ["db", "queue", "sandbox", "backends", "fleet", "realtime", "tools", "client"];

module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "contracts-import-only-zod",
      severity: "error",
      from: { path: "^packages/contracts/src", pathNot: "\\.test\\.ts$" },
      to: { pathNot: "^packages/contracts/src|node_modules/zod" },
    },
    {
      name: "pure-imports-contracts-and-itself",
      severity: "error",
      from: { path: "^packages/(rl|dispatch)/(src)", pathNot: "\\.test\\.ts$" },
      to: { pathNot: "^packages/contracts/src|^packages/$1/|node_modules/zod" },
    },
    {
      name: "agent-core-is-pure",
      severity: "error",
      from: { path: "^packages/agent/src/core", pathNot: "\\.test\\.ts$" },
      to: { pathNot: "^packages/contracts/src|^packages/agent/src/core|node_modules/zod" },
    },
    {
      name: "pure-uses-no-node-built-in",
      severity: "error",
      from: { path: pure, pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["core"] },
    },
    ...adapters.map((name) => ({
      name: `adapter-${name}-imports-no-other-adapter`,
      severity: "error",
      from: { path: `^packages/${name}/src` },
      to: { path: `^packages/(?!contracts/|rl/|dispatch/|agent/src/core/|${name}/)[^/]+/|^apps/` },
    })),
    {
      name: "tasks-import-tools-and-agent",
      severity: "error",
      from: { path: "^packages/tasks/src" },
      to: { path: "^packages/(?!contracts/|tasks/|tools/|agent/)[^/]+/|^apps/" },
    },
    {
      name: "web-imports-contracts-client-realtime-client-and-the-router-type",
      severity: "error",
      from: { path: "^apps/web" },
      to: {
        path: "^packages/|^apps/",
        pathNot:
          "^packages/(contracts|client)/|^packages/realtime/src/client|^apps/web|^apps/api/src/routers/app-router",
      },
    },
    {
      name: "web-takes-only-a-type-from-the-api",
      severity: "error",
      from: { path: "^apps/web" },
      to: { path: "^apps/api", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "apps-do-not-import-each-other",
      severity: "error",
      from: { path: "^apps/([^/]+)/" },
      to: { path: "^apps/(?!$1/)", pathNot: "^apps/api/src/routers/app-router" },
    },
    {
      name: "api-opens-no-backend-connection",
      severity: "error",
      from: { path: "^apps/api/src" },
      to: {
        path: "^packages/backends/src/tinker|^packages/agent/src/io/(?!load-tokenizer|resolve-model|named-templates)",
      },
    },
    {
      name: "no-dev-dependency-in-src",
      severity: "error",
      from: { path: "/src/", pathNot: "\\.test\\.tsx?$" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "\\.next|/generated/" },
    tsPreCompilationDeps: "specify",
    tsConfig: { fileName: "tsconfig.base.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
