/** Preloaded into every child of the supervisor: when the supervisor is gone, however it went, the child ends itself. */
if (process.channel) {
  process.channel.unref();
  process.on("disconnect", () => {
    process.kill(process.pid, "SIGTERM");
    setTimeout(() => process.exit(1), 12_000).unref();
  });
}
