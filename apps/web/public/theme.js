// Runs before the first paint so that the page never flashes in the other theme. Preference: light, dark or system.
(() => {
  let preference = "system";
  try {
    preference = localStorage.getItem("rolldeck.theme") || "system";
  } catch {
    // Storage may be closed to us (private windows): the system's theme is right then.
  }
  const dark = preference === "dark" || (preference !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
