/** The few pages this server draws itself: sign-in and "starting". One file, no scripts, nothing fetched; light and dark. */

const style = `
:root{color-scheme:light dark;--bg:#f9f9fa;--panel:#fff;--line:#e7e7ea;--text:#18181b;--soft:#64646e;--accent:#4451d1;--on:#fff;--code:#f2f2f4}
@media (prefers-color-scheme:dark){:root{--bg:#0e0e10;--panel:#131316;--line:#2f2f34;--text:#f1f1f4;--soft:#9d9da8;--accent:#8b98ff;--on:#0e0e10;--code:#1a1a1d}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--bg);color:var(--text);
font:13px/20px Inter,system-ui,-apple-system,"Segoe UI",sans-serif}
main{width:min(440px,calc(100vw - 32px));background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:24px}
.mark{display:flex;align-items:center;gap:8px;font-weight:600;margin-bottom:20px}
.mark svg{width:20px;height:20px;color:var(--accent)}
h1{font-size:20px;line-height:28px;font-weight:600;margin:0 0 8px}
p{margin:0 0 12px;color:var(--soft)}
code,input{font:13px/20px "JetBrains Mono",ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{margin:0 0 16px;padding:8px 12px;background:var(--code);border:1px solid var(--line);border-radius:6px;overflow:auto}
form{display:flex;gap:8px;margin-top:8px}
label{display:block;color:var(--soft);margin-top:16px}
input{flex:1;min-width:0;height:32px;padding:0 8px;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:var(--text)}
button{height:32px;padding:0 12px;border:0;border-radius:6px;background:var(--accent);color:var(--on);font:inherit;font-weight:500;cursor:pointer}
input:focus-visible,button:focus-visible,a:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.bar{height:2px;background:var(--line);border-radius:1px;overflow:hidden;margin:16px 0 0}
.bar i{display:block;width:30%;height:100%;background:var(--accent)}
@media (prefers-reduced-motion:no-preference){.bar i{animation:slide 1.2s ease-in-out infinite alternate}}
@keyframes slide{from{transform:translateX(0)}to{transform:translateX(233%)}}`;

const mark = `<div class="mark"><svg viewBox="0 0 18 18" aria-hidden="true"><rect x="1" y="2" width="16" height="3" rx="1" fill="var(--text)"/><rect x="1" y="7.5" width="11" height="3" rx="1" fill="currentColor"/><rect x="1" y="13" width="6" height="3" rx="1" fill="var(--soft)"/></svg>Rolldeck</div>`;

function page(title: string, body: string, head = ""): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex"><title>${title} · Rolldeck</title><link rel="icon" href="data:,">${head}<style>${style}</style></head><body><main>${mark}${body}</main></body></html>`;
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/gu, (character) => `&#${character.codePointAt(0) ?? 0};`);

const howTo = `<p>On the machine that runs this server, print a sign-in link and open it here. It works once, for 10 minutes.</p><pre>npx rolldeck login-url</pre>`;

const codeForm = (next: string): string =>
  `<label for="code">Or paste the code from the end of the link</label><form action="/sign-in" method="get"><input id="code" name="code" autocomplete="off" spellcheck="false" required maxlength="200"><input type="hidden" name="next" value="${escapeHtml(next)}"><button>Sign in</button></form>`;

export const signInPage = (next: string): string => page("Sign in", `<h1>Sign in</h1>${howTo}${codeForm(next)}`);

export const badCodePage = (next: string): string =>
  page(
    "Link not valid",
    `<h1>This sign-in link can't be used</h1><p>It was used before, is older than 10 minutes, or is not complete.</p>${howTo}${codeForm(next)}`,
  );

/** Asks for the page again every second until Next answers. */
export const startingPage = (): string =>
  page(
    "Starting",
    `<h1>Starting</h1><p>The server is up; its pages are still being prepared. This page opens them as soon as they are there.</p><p>If it stays here, the terminal that runs <code>npm start</code> says why.</p><div class="bar" role="progressbar" aria-label="Starting"><i></i></div>`,
    `<meta http-equiv="refresh" content="1">`,
  );

/**
 * Comes to the same address again from a page of this server itself. A strict cookie is not sent when another site links
 * here; it is on this second step.
 */
export const continuePage = (path: string): string =>
  page(
    "Opening",
    `<h1>Opening</h1><p><a href="${escapeHtml(path)}">Continue</a></p>`,
    `<meta http-equiv="refresh" content="0;url=${escapeHtml(path)}">`,
  );

export const noPagesPage = (): string =>
  page(
    "No pages",
    `<h1>This server has no pages</h1><p>It was started for its API only. Set <code>ROLLDECK_WEB_URL</code> to the address of the pages, or start everything with <code>npm start</code>.</p>`,
  );
